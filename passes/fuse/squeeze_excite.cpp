// Mean over the image -> 1x1 convolution -> activation -> 1x1 convolution -> gate -> product with the image (and a sum
// with it, in PP-OCR) -> modelflow.SqueezeExcite: two passes over the image and no node in between. Keras has its
// channels last and turns the means for its convolutions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "modelflow/modelflow.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/edits.h"
#include "passes/graph/epilogue.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

/// The channels of a mean over all axes between or behind batch and channels: first, last, or no such mean.
enum class Channels { none, second, last };

Channels channels_of(const Node& mean) {
  if (mean.is("GlobalAveragePool")) return Channels::second;
  const std::size_t rank = rank_of(mean.input(0)).value_or(0);
  const std::optional<Ints> axes = setting(mean, "axes", 1);
  std::optional<Ints> sorted = axes ? positive(*axes, static_cast<std::int64_t>(rank)) : std::nullopt;
  if (!sorted || rank < 3) return Channels::none;
  std::sort(sorted->begin(), sorted->end());
  Ints spatial(rank - 2);
  std::iota(spatial.begin(), spatial.end(), 1);
  if (*sorted == spatial) return Channels::last;
  std::iota(spatial.begin(), spatial.end(), 2);
  return *sorted == spatial ? Channels::second : Channels::none;
}

/// One number for each image and channel, as [batch, channels, 1, ...] or [batch, 1, ..., channels].
bool has_form(const Value& value, std::size_t rank, const Dim& count, Channels channels) {
  if (rank_of(&value) != rank) return false;
  const std::size_t place = channels == Channels::last ? rank - 1 : 1;
  for (std::size_t i = 1; i < rank; ++i)
    if (!(value.shape()[i] == (i == place ? count : Dim(1)))) return false;
  return true;
}

/// Leaves the numbers in their order and moves axes of extent 1 only.
bool moves_ones(const Node& node) {
  if (node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze")) return true;
  const Shape& shape = node.input(0)->shape();
  const Ints perm = node.attrs.ints("perm");
  if (!node.is("Transpose") || !shape.has_rank() || perm.size() != shape.rank()) return false;
  Ints order;
  for (const std::int64_t axis : perm)
    if (shape[static_cast<std::size_t>(axis)].number() != 1) order.push_back(axis);
  return std::is_sorted(order.begin(), order.end());
}

/// What `value`, one number for each image and channel, is called where it has this form at last; null when it never
/// has.
Value* formed(Value& value, std::size_t rank, const Dim& count, Channels channels, std::vector<Node*>& nodes) {
  Value* form = &value;
  while (Node* reader = only_reader(*form)) {
    if (reader->input(0) != form || !moves_ones(*reader)) break;
    nodes.push_back(reader);
    form = reader->output();
  }
  return has_form(*form, rank, count, channels) ? form : nullptr;
}

/// A 1x1 convolution that is the only reader of `x`; null when it is anything else.
Node* pointwise(const Value& x) {
  Node* node = only_reader(x);
  if (!node || !node->is("modelflow.Conv") || node->input(0) != &x) return nullptr;
  const auto all = [&](const char* name, std::int64_t wanted) { return all_are(node->attrs.ints(name), wanted); };
  const bool plain = all("kernel_shape", 1) && all("strides", 1) && all("pads", 0) && node->attrs.integer("group") == 1;
  const bool alone = node->attrs.text("residual") == "none" && node->attrs.text("activation") != "PRelu";  // has slopes
  return plain && alone ? node : nullptr;
}

struct Block {
  Value* x;
  Channels channels;
  Node *squeeze, *excite;
  Activation gate;
  std::vector<Node*> nodes;  ///< all that goes, in running order
  bool sum = false;
};

/// The other operand of a two-operand node.
Value* other(const Node& node, const Value& value) { return node.input(node.input(0) == &value ? 1 : 0); }

/// The activation of the second convolution as a gate between 0 and 1; nothing when it is none. A sixth of ReLU6 is a
/// HardSigmoid whose shift has gone into the convolution.
std::optional<Activation> gate_of(const Node& excite) {
  const Attrs& attrs = excite.attrs;
  const Activation activation{attrs.text("activation"), attrs.number("alpha"), attrs.number("beta")};
  const float scale = attrs.number("post_scale");
  if (attrs.number("post_shift") != 0) return {};
  if (activation.kind == "Sigmoid" || activation.kind == "HardSigmoid")
    return scale == 1 ? std::optional(activation) : std::nullopt;
  // Scale and bound are rounded once each.
  const double highest = static_cast<double>(scale) * activation.beta;
  const bool sixth = activation.kind == "Clip" && activation.alpha == 0 && std::abs(highest - 1) <= 0x1p-23;
  return sixth ? std::optional(Activation{"HardSigmoid", scale, 0}) : std::nullopt;
}

std::optional<Block> read(Node& mean, Context& context) {
  Block block{mean.input(0), channels_of(mean), nullptr, nullptr, {}, {&mean}};
  const std::size_t rank = rank_of(block.x).value_or(0);
  if (block.channels == Channels::none || rank < 3) return {};
  const Dim& channels = block.x->shape()[block.channels == Channels::last ? rank - 1 : 1];
  if (!channels.known()) return {};
  const Value* means = formed(*mean.output(), rank, channels, Channels::second, block.nodes);
  block.squeeze = means ? pointwise(*means) : nullptr;
  if (!block.squeeze) return {};
  block.nodes.push_back(block.squeeze);
  const Dim fewer = block.squeeze->input(1)->shape()[0];
  const Value* squeezed = formed(*block.squeeze->output(), rank, fewer, Channels::second, block.nodes);
  block.excite = squeezed ? pointwise(*squeezed) : nullptr;
  if (!block.excite) return {};
  block.nodes.push_back(block.excite);
  const std::optional<Activation> activation = gate_of(*block.excite);
  if (!activation) {
    context.miss("squeeze-excite", block.excite, "the gate is neither Sigmoid nor HardSigmoid", 3);
    return {};
  }
  block.gate = *activation;
  Value* gate = formed(*block.excite->output(), rank, channels, block.channels, block.nodes);
  Node* product = gate ? only_reader(*gate) : nullptr;
  if (!product || !product->is("Mul") || other(*product, *gate) != block.x) {
    context.miss("squeeze-excite", block.excite, "the gate is not multiplied with what it was computed from", 3);
    return {};
  }
  block.nodes.push_back(product);
  Node* sum = only_reader(*product->output());
  block.sum = sum && sum->is("Add") && other(*sum, *product->output()) == block.x;
  if (block.sum) block.nodes.push_back(sum);
  return block;
}

/// The bias of a convolution, zeros when it has none.
Value* bias_of(const Node& conv) {
  if (Value* bias = input_as(conv, "bias")) return bias;
  const std::int64_t channels = weights_in(conv)->constant()->dims()[0];
  return &conv.graph().add_constant(Tensor::make(DType::f32, {channels}, [](std::byte*) {}), "zeros");
}

bool fuse_block(const Block& block, Context& context) {
  Graph& graph = block.squeeze->graph();
  Node& last = *block.nodes.back();
  const Attrs& first = block.squeeze->attrs;
  Attrs attrs;
  for (const char* name : {"activation", "alpha", "beta", "post_scale", "post_shift"})
    attrs.set(name, *first.find(name));
  attrs.set("gate", block.gate.kind).set("gate_alpha", Attr(block.gate.alpha));
  attrs.set("gate_beta", Attr(block.gate.beta)).set("skip", block.sum ? 1 : 0);
  attrs.set("layout", block.channels == Channels::last ? "NHWC" : "NCHW");
  std::vector<Value*> inputs = {block.x, block.squeeze->input(1), bias_of(*block.squeeze), block.excite->input(1),
                                bias_of(*block.excite)};
  Node* fused = make_fused(graph, context, "squeeze-excite", "modelflow.SqueezeExcite", std::move(inputs),
                           std::move(attrs), last);
  if (!fused) return false;
  fused->name = block.excite->name;
  graph.replace(*last.output(), *fused->output());
  for (auto node = block.nodes.rbegin(); node != block.nodes.rend(); ++node) graph.erase(**node);
  context.hit("squeeze-excite");
  return true;
}

int run(Graph& graph, Context& context) {
  const std::vector<Node*> means = nodes_of(graph, {"GlobalAveragePool", "ReduceMean"});
  int changes = 0;
  for (Node* mean : means) {
    if (const std::optional<Block> block = read(*mean, context)) changes += fuse_block(*block, context);
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass fuse_squeeze_excite() {
  return {.name = "fuse-squeeze-excite",
          .doc =
              "Mean, two 1x1 convolutions, gate and product (MobileNetV3, EfficientNet, PP-OCR) -> "
              "modelflow.SqueezeExcite",
          .run = run};
}

}  // namespace modelflow::passes
