// An image cut into blocks whose pixels become channels, and a convolution behind it -> a convolution over the image
// with windows and strides as many times as large: the same products, and nothing is moved. Blocks come as strided
// slices (the Focus layer of YOLOv5), as SpaceToDepth, or as Reshape, Transpose, Reshape (pixel_unshuffle of PyTorch).
#include <algorithm>
#include <set>

#include "modelflow/modelflow.h"
#include "passes/graph/facts.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

namespace {

/// Where a channel of the blocks comes from.
struct Place {
  auto operator<=>(const Place&) const = default;
  std::int64_t channel, row, column;
};

struct Blocks {
  Value* image = nullptr;
  std::int64_t size = 0;  ///< rows and columns of a block
  std::vector<Place> places;
  std::int64_t channels = 0;  ///< of the image
  Ints shape = {};            ///< what `image` is reshaped to first; empty: it is the image
};

/// The number of channels of an image; 0 when it is none.
std::int64_t channels_of(const Value& value) {
  const bool image = rank_of(&value) == 4 && value.shape()[1].known();
  return image ? value.shape()[1].value() : 0;
}

std::optional<Blocks> from_op(const Node& node) {
  if (!node.is("SpaceToDepth") || !node.input(0)) return {};
  const std::int64_t channels = channels_of(*node.input(0));
  const std::string mode = node.attrs.text("mode", "DCR");  // of opset 28
  if (channels == 0 || (mode != "DCR" && mode != "CRD")) return {};
  Blocks blocks{node.input(0), node.attrs.integer("blocksize"), {}, channels};
  for (std::int64_t row = 0; row < blocks.size; ++row)
    for (std::int64_t column = 0; column < blocks.size; ++column)
      for (std::int64_t c = 0; c < channels; ++c) blocks.places.push_back({c, row, column});
  if (mode == "CRD") std::ranges::sort(blocks.places);  // the channel is outermost
  return blocks;
}

/// Every so many rows or columns, or both, in one Slice or two.
struct Strided {
  Value* image;
  std::int64_t start[2] = {0, 0}, step[2] = {1, 1};
};

constexpr std::int64_t kLargest = 1024;  ///< blocks and where they begin

bool add_slice(const Node& node, Strided& taken) {
  Strided strided = taken;
  const std::optional<Ints> starts = const_ints(node.input(1)), ends = const_ints(node.input(2)),
                            given = const_ints(node.input(3)), steps = const_ints(node.input(4));
  const auto axes = given ? positive(*given, 4) : std::nullopt;
  if (!starts || !ends || !axes || !steps || rank_of(node.input(0)) != 4) return false;
  if (starts->size() != axes->size() || ends->size() != axes->size() || steps->size() != axes->size()) return false;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] < 2) return false;
    const auto at = static_cast<std::size_t>((*axes)[i] - 2);
    const Dim& extent = node.input(0)->shape()[static_cast<std::size_t>((*axes)[i])];
    const std::int64_t all = extent.known() ? extent.value() : INT32_MAX;
    const std::int64_t start = (*starts)[i], step = (*steps)[i];
    if (step < 1 || step > kLargest || start < 0 || start > kLargest || (*ends)[i] < all) return false;
    // What was taken of the result so far, seen from here: this slice comes first.
    strided.start[at] = start + strided.start[at] * step;
    strided.step[at] *= step;
    if (strided.step[at] > kLargest || strided.start[at] > kLargest) return false;
  }
  strided.image = node.input(0);
  taken = strided;
  return true;
}

std::optional<Strided> read_slices(Value& value) {
  Strided strided{&value};
  while (const Node* node = strided.image->producer())
    if (!node->is("Slice") || !add_slice(*node, strided)) break;
  return strided.image != &value ? std::optional(strided) : std::nullopt;
}

/// No row or column is left over: the extent says so, or that the first and the last of a block come as often.
bool divides(const Blocks& blocks, std::size_t axis) {
  const Dim& extent = blocks.image->shape()[axis];
  if (extent.known()) return extent.value() % blocks.size == 0;
  const auto there = [&](std::int64_t start) {
    return std::ranges::any_of(blocks.places, [&](const Place& p) { return (axis == 2 ? p.row : p.column) == start; });
  };
  return there(0) && there(blocks.size - 1);
}

std::optional<Blocks> from_slices(const Node& concat) {
  if (!concat.is("Concat") || rank_of(concat.output()) != 4) return {};
  if (positive({concat.attrs.integer("axis")}, 4) != Ints{1}) return {};
  Blocks blocks;
  for (Value* part : concat.inputs()) {
    const std::optional<Strided> strided = part ? read_slices(*part) : std::nullopt;
    if (!strided || strided->step[0] != strided->step[1]) return {};
    if (blocks.image && (strided->image != blocks.image || strided->step[0] != blocks.size)) return {};
    blocks.image = strided->image;
    blocks.size = strided->step[0];
    if (strided->start[0] >= blocks.size || strided->start[1] >= blocks.size) return {};
    for (std::int64_t c = 0; c < channels_of(*blocks.image); ++c)
      blocks.places.push_back({c, strided->start[0], strided->start[1]});
  }
  if (!blocks.image || !divides(blocks, 2) || !divides(blocks, 3)) return {};
  blocks.channels = channels_of(*blocks.image);
  return blocks;
}

/// The shape with six axes, N being 1 where there are five.
std::vector<Dim> with_batch(const Shape& shape) {
  std::vector<Dim> dims = shape.dims();
  if (dims.size() == 5) dims.insert(dims.begin(), Dim(1));
  return dims;
}

/// What is cut into `apart`, [N, C, h, b, w, b], as an image: itself where it is one, else reshaped.
bool find_image(const Node& cut, const std::vector<Dim>& apart, Blocks& blocks) {
  blocks.image = cut.input(0);
  blocks.channels = apart[1].value();
  // Rows and columns are cut by the size, and nothing is shared out with the batch. One extent that is not proven equal
  // follows from the number of elements.
  if (channels_of(*blocks.image) == blocks.channels) {
    const Shape& x = blocks.image->shape();
    const Dim whole[] = {apart[0], apart[2] * apart[3], apart[4] * apart[5]}, given[] = {x[0], x[2], x[3]};
    int equal = 0, unlike = 0;
    for (int i = 0; i < 3; ++i) {
      equal += whole[i] == given[i];
      unlike += whole[i].known() && given[i].known() && !(whole[i] == given[i]);
    }
    if (equal >= 2 && unlike == 0) return true;
  }
  for (std::size_t i = 1; i < apart.size(); ++i)
    if (!apart[i].known() || apart[i].value() == 0) return false;
  const std::int64_t batch = apart[0].known() && apart[0].value() > 0 ? apart[0].value() : -1;
  blocks.shape = {batch, blocks.channels, apart[2].value() * blocks.size, apart[4].value() * blocks.size};
  return true;
}

/// [N, C, h, b, w, b], its third, fourth and sixth axes brought together in any order behind N, and joined.
std::optional<Blocks> from_views(const Node& join) {
  const Node* turn = join.is("Reshape") ? join.input(0)->producer() : nullptr;
  const Node* cut = turn && turn->is("Transpose") ? turn->input(0)->producer() : nullptr;
  if (!cut || !cut->is("Reshape") || rank_of(join.output()) != 4 || !turn->input(0)->shape().has_rank()) return {};
  const std::vector<Dim> apart = with_batch(turn->input(0)->shape());
  Ints perm = turn->attrs.ints("perm");
  if (apart.size() != 6) return {};
  if (perm.size() == 5) {
    for (std::int64_t& axis : perm) ++axis;
    perm.insert(perm.begin(), 0);
  }
  const Shape& y = join.output()->shape();
  Ints sorted = perm;
  std::ranges::sort(sorted);
  if (sorted != Ints{0, 1, 2, 3, 4, 5}) return {};
  if (perm[0] != 0 || perm[4] != 2 || perm[5] != 4 || !apart[1].known() || !apart[3].known()) return {};
  const std::int64_t channels = apart[1].value(), size = apart[3].value();
  if (!(apart[3] == apart[5]) || size < 2 || y[1].number() != channels * size * size) return {};
  // One extent that is not proven equal follows from the number of elements.
  if ((y[0] == apart[0]) + (y[2] == apart[2]) + (y[3] == apart[4]) < 2) return {};
  Blocks blocks{nullptr, size, {}};
  if (!find_image(*cut, apart, blocks)) return {};
  const std::int64_t extent[6] = {0, channels, 0, size, 0, size};
  for (std::int64_t i = 0; i < channels * size * size; ++i) {
    std::int64_t at[6] = {}, rest = i;
    for (const std::size_t axis : {3, 2, 1}) {
      const auto from = static_cast<std::size_t>(perm[axis]);
      at[from] = rest % extent[from];
      rest /= extent[from];
    }
    blocks.places.push_back({at[1], at[3], at[5]});
  }
  return blocks;
}

Verdict over_blocks(const Node& conv, const Blocks& blocks) {
  const Value* w = conv.input(1);
  if (!w || !w->constant() || w->constant()->rank() != 4 || w->dtype() != DType::f32)
    return no("the weights are no float32 constant", conv.label());
  if (conv.attrs.integer("group", 1) != 1) return no("the convolution is grouped", conv.label());
  for (const std::int64_t d : conv.attrs.ints("dilations"))
    if (d != 1) return no("the window has holes", conv.label());
  if (!explicit_pads(conv)) return no("the border depends on the extents", conv.label());
  if (w->constant()->dims()[1] != static_cast<std::int64_t>(blocks.places.size())) return no("channels do not fit");
  return yes();
}

/// The weights where the image has what they multiply.
Tensor spread(const Tensor& w, const Blocks& blocks) {
  const Dims& d = w.dims();
  const std::int64_t b = blocks.size, channels = blocks.channels;
  const auto from = w.as<float>();
  return Tensor::make(DType::f32, {d[0], channels, d[2] * b, d[3] * b}, [&](std::byte* bytes) {
    auto* to = reinterpret_cast<float*>(bytes);
    for (std::size_t at = 0; at < from.size(); ++at) {
      const auto i = static_cast<std::int64_t>(at);
      const std::int64_t column = i % d[3], row = i / d[3] % d[2], filter = i / d[3] / d[2] / d[1];
      const Place& place = blocks.places[static_cast<std::size_t>(i / d[3] / d[2] % d[1])];
      const std::int64_t y = row * b + place.row, x = column * b + place.column;
      to[((filter * channels + place.channel) * d[2] * b + y) * d[3] * b + x] += from[at];
    }
  });
}

bool widen(Node& conv, Context& context) {
  const Node* cut = conv.input(0)->producer();
  if (!cut || !cut->domain().empty()) return false;
  std::optional<Blocks> blocks = from_op(*cut);
  if (!blocks) blocks = from_slices(*cut);
  if (!blocks) blocks = from_views(*cut);
  if (!blocks || blocks->size < 2) return false;
  // Pixels that nobody reads would be multiplied by zeros.
  const std::set<Place> read(blocks->places.begin(), blocks->places.end());
  const std::int64_t pixels = blocks->channels * blocks->size * blocks->size;
  if (static_cast<std::int64_t>(read.size()) != pixels || pixels == 0) return false;
  if (const Verdict verdict = over_blocks(conv, *blocks); !verdict) {
    context.miss("blocks-into-convolution", &conv, verdict.reason);
    return false;
  }
  Build build(conv.graph(), conv, context);
  const Tensor& w = *conv.input(1)->constant();
  std::vector<Value*> inputs = conv.inputs();
  inputs[0] = blocks->image;
  if (!blocks->shape.empty())
    inputs[0] = &build.op("Reshape", {blocks->image, &build.constant(tensor_of(blocks->shape), "image")});
  inputs[1] = &build.constant(spread(w, *blocks), conv.input(1)->name());
  Attrs attrs = conv.attrs;
  for (const auto& [name, otherwise] : {std::pair{"strides", Ints{1, 1}}, std::pair{"pads", Ints{0, 0, 0, 0}}}) {
    Ints values = attrs.ints(name, otherwise);
    for (std::int64_t& value : values) value *= blocks->size;
    attrs.set(name, Attr(values));
  }
  attrs.erase("auto_pad");  // VALID, beside which ONNX Runtime refuses pads
  attrs.set("kernel_shape", Attr(Ints{w.dims()[2] * blocks->size, w.dims()[3] * blocks->size}));
  conv.graph().replace(*conv.output(), build.op("Conv", inputs, attrs));
  context.hit("blocks-into-convolution");
  return true;
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> convs = nodes_of(graph, {"Conv"});
  int changes = 0;
  for (Node* conv : convs) changes += widen(*conv, context);
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass widen_over_blocks() {
  return {.name = "space-to-depth",
          .doc = "A convolution behind an image cut into blocks -> a convolution with a larger window and stride",
          .run = run};
}

}  // namespace modelflow::passes
