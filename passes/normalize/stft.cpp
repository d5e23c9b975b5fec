// STFT and DFT of constant length -> the products that they are. ONNX Runtime computes both on one thread, frame after
// frame, with a plain radix-2 FFT, or with Bluestein's three FFTs where the length is no power of two.
#include <bit>
#include <cmath>
#include <optional>

#include "modelflow/modelflow.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/normalize/complex_parts.h"
#include "passes/normalize/dft_basis.h"
#include "passes/normalize/normalize.h"
#include "src/core/unknown_extents.h"

namespace modelflow::passes {

namespace {

using Part = DftBasis::Part;

/// What ONNX Runtime takes for one transform, on its one thread: 3 ns for each number and level (measured from 256 to
/// 4096 on Cascade Lake: 6.7, 14, 31, 65 and 145 us), and three transforms of the next power of two above twice the
/// length where that is none (400: 150 us, 800: 170 us, 2000: 780 us).
double fft_seconds(std::int64_t length) {
  const auto size = static_cast<std::uint64_t>(length);
  const bool plain = std::has_single_bit(size);
  const auto n = static_cast<double>(plain ? size : std::bit_ceil(2 * size - 1));
  return (plain ? 1 : 3) * 3e-9 * n * std::log2(n);
}

/// By cost on one thread, where the product has no advantage of several. Paired with stock ONNX Runtime over 300 frames
/// (1 thread, 2 threads): STFT of 256 runs 5.4, 15 times as fast, 400: 35, 51, 512: 3.0, 6.0, 800: 15, 23, 1024: 1.7,
/// 3.0, 2048: 1.0, 1.75, 4096: 0.44, 0.99; its own convolution over 1024 is as fast as its FFT (1.04). DFT of 128 rows:
/// 256 real 6.2, complex 1.8; 512 real 4.6, complex 0.9; 1024 real 1.5, complex 0.4.
Verdict pays(const DftBasis& basis, double rows, double depth, double outputs) {
  constexpr double kFlops = 100e9, kBytes = 10e9;  // per second; the basis is read once for all rows
  constexpr double kLargest = 1 << 22;             // numbers: the model grows by them
  const double product = 2 * depth * outputs / kFlops + 4 * depth * outputs / kBytes / rows;
  if (depth * outputs <= kLargest && product < fft_seconds(basis.length)) return yes();
  return no("an FFT of length " + std::to_string(basis.length) + " takes less time than the product");
}

/// What `x` mostly is, for costs.
Shape typical_shape(const Value& x, const Context& context) { return TypicalSizes(context).of(x); }

constexpr auto kRows = static_cast<double>(typical::kRows);

std::optional<std::int64_t> const_scalar(const Value* value) {
  const std::optional<Ints> ints = const_ints(value);
  return ints && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
}

/// Takes the place of `node`: both parts where its readers want these, else the parts in turns.
void put_in_place(Node& node, Context& context, const std::function<Value&(Build&, Part)>& make) {
  Value& z = *node.output();
  Build build(node.graph(), node, context);
  if (read_as_parts(z)) {
    Value& real = make(build, Part::real);
    serve_parts(z, real, make(build, Part::imaginary), context);
  } else {
    node.graph().replace(z, make(build, Part::both));
  }
}

struct Stft {
  DftBasis basis;
  std::int64_t step;
  std::span<const float> window;
};

/// In all signals together.
double frames_of(const Value& x, const Stft& stft, const Context& context) {
  const Shape shape = typical_shape(x, context);
  const std::int64_t signals = shape[0].number().value_or(typical::kBatch);
  const std::int64_t room = shape[1].number().value_or(-1) - stft.basis.length;
  const double frames = room >= 0 ? std::floor(static_cast<double>(room) / static_cast<double>(stft.step)) + 1
                        : x.shape()[1].known() ? 1
                                               : kRows;  // what is typical for others is too short for this one
  return std::max(frames * static_cast<double>(signals), 1.0);
}

Verdict read_stft(const Node& node, const Context& context, std::optional<Stft>& stft) {
  const Value& x = *node.input(0);
  const auto rank = rank_of(&x);
  if (x.dtype() != DType::f32) return no("is not float32", x.name());
  if (rank != 2 && !(rank == 3 && x.shape()[2] == Dim(1))) return no("is no batch of real signals", x.name());
  const std::optional<std::int64_t> step = const_scalar(node.input(1));
  if (!step || *step < 1) return no("the step between frames is not constant");
  const Tensor* window = node.input(2) ? node.input(2)->constant() : nullptr;
  if (node.input(2) && (!window || window->dtype() != DType::f32))
    return no("is no float32 constant", node.input(2)->name());
  const std::optional<std::int64_t> length = node.input(3) ? const_scalar(node.input(3))
                                             : window      ? std::optional(window->elements())
                                                           : std::nullopt;
  if (!length || *length < 1) return no("the length of frames is not constant");
  if (window && window->elements() != *length) return no("is no window of that length", node.input(2)->name());
  const bool half = node.attrs.integer("onesided", 1) != 0;
  stft = Stft{{*length, half ? *length / 2 + 1 : *length}, *step, {}};
  if (window) stft->window = window->as<float>();
  const double bins = 2 * static_cast<double>(stft->basis.bins);
  return pays(stft->basis, frames_of(x, *stft, context), static_cast<double>(*length), bins);
}

/// Frames are what a convolution with a stride reads: [batch, frames, bins], or [batch, frames, bins, 2] of both parts.
Value& frames_product(Build& build, Value& x, const Stft& stft, Part part) {
  Value& signal = rank_of(&x) == 2 ? build.op("Unsqueeze", {&x, &build.constant(tensor_of({1}), "axes")})
                                   : build.op("Transpose", {&x}, {{"perm", Ints{0, 2, 1}}});
  Value& w = build.constant(stft.basis.filters(stft.window, part), "dft");
  const Attrs attrs = {{"kernel_shape", Ints{stft.basis.length}}, {"strides", Ints{stft.step}}};
  Value& y = build.op("Transpose", {&build.op("Conv", {&signal, &w}, attrs)}, {{"perm", Ints{0, 2, 1}}});
  if (part != Part::both) return y;
  return build.op("Reshape", {&y, &build.constant(tensor_of({0, 0, stft.basis.bins, 2}), "shape")});
}

/// What is known of the result. ONNX's own inference (1.23) leaves the rank open where an extent is, and forgets that
/// onesided is the default.
void declare(Node& node, const Stft& stft) {
  if (!node.attrs.has("onesided")) node.attrs.set("onesided", 1);
  const Shape& x = node.input(0)->shape();
  const Dim frames = x[1].known() ? Dim((x[1].value() - stft.basis.length) / stft.step + 1) : Dim();
  if (node.output()->is_graph_output()) return;  // what is declared of the interface stays
  node.output()->type = Type::tensor(DType::f32, Shape({x[0], frames, Dim(stft.basis.bins), Dim(2)}));
}

struct Dft {
  DftBasis basis;
  std::size_t axis;
  std::int64_t rows, components;  ///< of x along the axis, of each number
};

Verdict read_dft(const Node& node, const Context& context, std::optional<Dft>& dft) {
  const Value& x = *node.input(0);
  const std::size_t rank = rank_of(&x).value_or(0);
  if (x.dtype() != DType::f32) return no("is not float32", x.name());
  if (rank < 2 || !x.shape().back().known() || x.shape().back().value() > 2)
    return no("its last axis is not known to hold one or two parts", x.name());
  // The axis became an input with opset 20, and the second last the default.
  const std::optional<std::int64_t> given = context.model.opset() < 20 ? node.attrs.integer("axis", 1)
                                            : node.input(2)            ? const_scalar(node.input(2))
                                                                       : std::optional<std::int64_t>(-2);
  const auto axis = given ? positive({*given}, static_cast<std::int64_t>(rank)) : std::nullopt;
  if (!axis || static_cast<std::size_t>(axis->front()) + 1 >= rank) return no("its axis is not constant");
  const Dim& extent = x.shape()[static_cast<std::size_t>(axis->front())];
  if (!extent.known() || extent.value() < 1) return no("its extent along the axis is unknown", x.name());
  const std::optional<std::int64_t> length =
      node.input(1) ? const_scalar(node.input(1)) : std::optional(extent.value());
  if (!length || *length < 1) return no("its length is not constant");
  const bool half = node.attrs.integer("onesided") != 0, inverse = node.attrs.integer("inverse") != 0;
  // Half of the spectrum of complex numbers is no spectrum; what the inverse of a half means changed with versions.
  if (half && (inverse || x.shape().back().value() == 2)) return no("is onesided, but not of a real signal");
  dft = Dft{{*length, half ? *length / 2 + 1 : *length, inverse},
            static_cast<std::size_t>(axis->front()),
            extent.value(),
            x.shape().back().value()};
  const Shape typical = typical_shape(x, context);
  const auto numbers = static_cast<double>(dft->rows * dft->components);
  const double rows = typical.known() ? typical.known_elements() / numbers : kRows;
  return pays(dft->basis, std::max(rows, 1.0), numbers, 2 * static_cast<double>(dft->basis.bins));
}

/// Of complex numbers without imaginary parts, as PyTorch's exporters write a transform of real ones: half of a
/// product.
Value* real_numbers(const Node& dft) {
  const Value* x = dft.input(0);
  const Node* joined = x ? x->producer() : nullptr;
  if (dft.attrs.integer("inverse") != 0 || dft.attrs.integer("onesided") != 0) return nullptr;
  if (!joined || !joined->is("Concat") || joined->inputs().size() != 2 || !x->shape().has_rank()) return nullptr;
  const auto rank = static_cast<std::int64_t>(x->shape().rank());
  Value* real = joined->input(0);
  if (positive({joined->attrs.integer("axis")}, rank) != Ints{rank - 1} || !(x->shape().back() == Dim(2)))
    return nullptr;
  const bool single = rank_of(real) == x->shape().rank() && real->shape().back() == Dim(1);
  return single && is_zero(*joined->input(1)) ? real : nullptr;
}

/// The axes in order, but for two neighbours of the last one that change places.
Value& swapped(Build& build, Value& x, std::size_t axis, std::size_t with) {
  if (axis == with) return x;
  Ints perm;
  for (std::size_t i = 0; i < x.shape().rank(); ++i) perm.push_back(static_cast<std::int64_t>(i));
  std::swap(perm[axis], perm[with]);
  return build.op("Transpose", {&x}, {{"perm", perm}});
}

Value& rows_product(Build& build, Value& x, const Dft& dft, Part part) {
  const std::size_t place = x.shape().rank() - 2;
  const auto ending_in = [&](Value& value, const Ints& last) -> Value& {
    Ints target(place, 0);
    target.insert(target.end(), last.begin(), last.end());
    return build.op("Reshape", {&value, &build.constant(tensor_of(target), "shape")});
  };
  Value& rows = ending_in(swapped(build, x, dft.axis, place), {dft.rows * dft.components});
  Value& basis = build.constant(dft.basis.matrix(dft.rows, dft.components, part), "dft");
  Value& y = build.op("MatMul", {&rows, &basis});
  if (part != Part::both) return swapped(build, y, dft.axis, place);
  return swapped(build, ending_in(y, {dft.basis.bins, 2}), dft.axis, place);
}

/// A node that becomes a product, and which.
struct Rewrite {
  Node* node;
  std::function<Value&(Build&, Part)> product;
};

std::optional<Rewrite> plan(Node& node, Context& context) {
  std::optional<Stft> stft;
  std::optional<Dft> dft;
  const Verdict verdict = node.is("STFT") ? read_stft(node, context, stft) : read_dft(node, context, dft);
  if (!verdict) {
    context.miss(node.is("STFT") ? "stft" : "dft", &node, verdict.reason);
    return {};
  }
  Value& x = *node.input(0);
  if (dft) return Rewrite{&node, [&x, d = *dft](Build& b, Part part) -> Value& { return rows_product(b, x, d, part); }};
  declare(node, *stft);
  return Rewrite{&node, [&x, s = *stft](Build& b, Part part) -> Value& { return frames_product(b, x, s, part); }};
}

int run(Graph& graph, Context& context) {
  std::vector<Rewrite> rewrites;
  int changes = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->is("STFT") && !node->is("DFT")) continue;
    if (Value* real = node->is("DFT") ? real_numbers(*node) : nullptr) {
      graph.set_input(*node, 0, real);
      context.hit("real-dft");
      ++changes;
    }
    if (std::optional<Rewrite> rewrite = plan(*node, context)) rewrites.push_back(std::move(*rewrite));
  }
  if (rewrites.empty()) return changes;
  infer_types(context.model);  // with what declare() told
  for (const Rewrite& rewrite : rewrites) {
    context.hit(rewrite.node->is("STFT") ? "stft" : "dft");
    put_in_place(*rewrite.node, context, rewrite.product);
  }
  graph.prune();
  return changes + static_cast<int>(rewrites.size());
}

}  // namespace

Pass normalize_spectra() {
  return {.name = "normalize-spectra",
          .doc = "STFT and DFT of constant length -> a convolution, a product, with a constant basis",
          .run = run};
}

}  // namespace modelflow::passes
