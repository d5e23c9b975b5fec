// Shapes with names for what nobody knows.
#include "passes/graph/extents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "modelflow/pass.h"
#include "modelflow/random.h"
#include "modelflow/shape.h"
#include "modelflow/typical.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

constexpr std::array<std::string_view, 37> kElementwise = {
    "Relu",     "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Gelu",  "Mish", "Elu",
    "Selu",     "Celu",      "Abs",  "Neg",     "Exp",  "Log",         "Sqrt",      "Floor", "Ceil", "Round",
    "Softplus", "Softsign",  "Erf",  "Sign",    "Cast", "Identity",    "Dropout",   "PRelu", "Add",  "Sub",
    "Mul",      "Div",       "Pow",  "Max",     "Min",  "Reciprocal",  "Where"};

/// No elementwise ops, but the result is of the shape of the first input.
constexpr std::array<std::string_view, 10> kSameShape = {"Dropout",
                                                         "BatchNormalization",
                                                         "Softmax",
                                                         "LogSoftmax",
                                                         "LayerNormalization",
                                                         "RMSNormalization",
                                                         "GroupNormalization",
                                                         "InstanceNormalization",
                                                         "QuantizeLinear",
                                                         "DequantizeLinear"};

bool numeric(const Dim& dim) { return dim.known(); }

/// What one output extent of a window (convolution, pooling) is; empty when no polynomial says it.
Dim window(const Dim& in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation, std::int64_t pads) {
  const Dim added = Dim(pads) - (Dim(kernel) - Dim(1)) * Dim(dilation) - Dim(1), room = in + added;
  if (room.unknown()) return {};
  if (room.known()) return Dim(std::max<std::int64_t>(room.value() / stride + 1, 0));
  if (stride == 1) return room + Dim(1);
  // Rounded down: no polynomial, but a name that every window of the same kind over the same extent shares.
  return Dim::symbol("window(" + in.str() + "|" + added.str() + "|" + std::to_string(stride) + ")");
}

std::int64_t entry(const Ints& list, std::size_t i, std::int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

/// Broadcasting of one axis; unknown when the two cannot be told apart from a broadcast.
Dim broadcast(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.known() && a.value() != 1) return a;
  if (b.known() && b.value() != 1) return b;
  if (a.known()) return b;  // 1
  if (b.known()) return a;
  return {};
}

Shape broadcast(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return {};
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim one = 1;
    const Dim& left = i + a.rank() < rank ? one : a[i + a.rank() - rank];
    const Dim& right = i + b.rank() < rank ? one : b[i + b.rank() - rank];
    dims[i] = broadcast(left, right);
  }
  return Shape(std::move(dims));
}

/// A convolution, ours or standard, or a pooling without ceil_mode: [batch, channels, windows...].
Shape windows(const Node& node, const Shape& x, Dim channels, std::size_t spatial, bool x_last, bool y_last,
              const Ints& kernel) {
  const Ints strides = node.attrs.ints("strides"), dilations = node.attrs.ints("dilations");
  const Ints pads = node.attrs.ints("pads");
  const std::string auto_pad = node.attrs.text("auto_pad", "NOTSET");
  std::vector<Dim> dims(spatial + 2);
  dims[y_last ? spatial + 1 : 1] = std::move(channels);
  if (x.has_rank() && x.rank() == spatial + 2) {
    dims[0] = x[0];
    for (std::size_t i = 0; i < spatial; ++i) {
      const Dim& in = x[i + (x_last ? 1 : 2)];
      const std::int64_t stride = entry(strides, i, 1);
      const Dim reach = (Dim(kernel[i]) - Dim(1)) * Dim(entry(dilations, i, 1));
      std::int64_t pad = entry(pads, i, 0) + entry(pads, i + spatial, 0);
      if (auto_pad == "VALID") pad = 0;
      const bool holes = !node.is("Conv") && entry(dilations, i, 1) != 1;  // a pooling pads as if it had none
      if (auto_pad.starts_with("SAME")) pad = stride == 1 && !holes ? reach.number().value_or(-1) : -1;
      if (pad >= 0) dims[i + (y_last ? 1 : 2)] = window(in, kernel[i], stride, entry(dilations, i, 1), pad);
    }
  }
  return Shape(std::move(dims));
}

}  // namespace

bool elementwise(const Node& node) {
  if (const FusedOp* op = fused_op(node)) return op->elementwise;
  // A mask lies as the elements do, and so do numbers that are drawn for them.
  if (node.is("Dropout") && (draws(node) || (node.output(1) && !node.output(1)->uses().empty()) ||
                             (node.output(1) && node.output(1)->is_graph_output())))
    return false;
  return node.domain().empty() && std::find(kElementwise.begin(), kElementwise.end(), node.op()) != kElementwise.end();
}

Dim Extents::declared(const Value& value, std::size_t axis) const {
  const Dim& dim = value.shape()[axis];
  if (dim.known()) return dim;
  if (!numbers_) return dim;
  if (const auto number = dim.evaluate(symbols_); number && *number >= 0) return Dim(*number);
  if (value.producer()) return {};
  if (const auto input = input_dims_.find(&value); input != input_dims_.end()) return Dim(input->second[axis]);
  return Dim(axis == 0 ? typical::kBatch : typical::kImage);
}

Shape Extents::derived(const Node& node) {
  const auto in = [&](std::size_t i) { return node.input(i) ? of(*node.input(i)) : Shape(); };
  const bool ours = computes(node, Family::convolution);
  if (ours || node.is("Conv")) {
    const Shape w = node.input(1) ? node.input(1)->shape() : Shape();
    if (!w.known() || w.rank() < 3) return {};
    const std::vector<std::int64_t> dims = w.values();
    return windows(node, in(0), Dim(dims[0]), dims.size() - 2, ours && node.attrs.text("x_layout") == "NHWC",
                   ours && node.attrs.text("y_layout") == "NHWC", Ints(dims.begin() + 2, dims.end()));
  }
  if ((node.is("MaxPool") || node.is("AveragePool")) && node.attrs.integer("ceil_mode") == 0) {
    const Ints kernel = node.attrs.ints("kernel_shape");
    const Shape x = in(0);
    return windows(node, x, x.has_rank() && x.rank() > 1 ? x[1] : Dim(), kernel.size(), false, false, kernel);
  }
  if (node.is("Concat")) {
    Shape first = in(0);
    if (!first.has_rank()) return {};
    std::vector<Dim> dims = first.dims();
    std::int64_t axis = node.attrs.integer("axis");
    if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
    if (axis < 0 || axis >= static_cast<std::int64_t>(dims.size())) return {};
    for (std::size_t i = 1; i < node.inputs().size(); ++i) {
      const Shape next = in(i);
      if (!next.has_rank() || next.rank() != dims.size()) return {};
      dims[static_cast<std::size_t>(axis)] =
          dims[static_cast<std::size_t>(axis)] + next[static_cast<std::size_t>(axis)];
    }
    return Shape(std::move(dims));
  }
  if (node.is("Resize") || node.is("Upsample")) {
    const Value* scales = node.input(node.is("Resize") && node.inputs().size() > 2 ? 2 : 1);
    const Shape x = in(0);
    if (!scales || !scales->constant() || scales->constant()->dtype() != DType::f32 || !x.has_rank()) return {};
    const auto factors = scales->constant()->as<float>();
    if (factors.size() != x.rank()) return {};
    std::vector<Dim> dims(x.rank());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const auto whole = [](float number) {
        return number >= 0 && number < 1e15F ? Dim(static_cast<std::int64_t>(std::floor(number))) : Dim();
      };
      if (factors[i] == std::floor(factors[i])) dims[i] = x[i] * whole(factors[i]);
      if (x[i].known()) dims[i] = whole(static_cast<float>(x[i].value()) * factors[i]);
    }
    return Shape(std::move(dims));
  }
  if (fused_op(node) && !elementwise(node)) return inferred(node);
  const bool same = std::any_of(kSameShape.begin(), kSameShape.end(), [&](const auto op) { return node.is(op); });
  if (!same && !elementwise(node)) return {};
  Shape shape = in(0);
  const bool one = same || node.is("Clip");
  for (std::size_t i = 1; !one && i < node.inputs().size(); ++i) shape = broadcast(shape, in(i));
  return shape;
}

/// What the op itself says of its first result.
Shape Extents::inferred(const Node& node) {
  Call call = call_of(node);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (node.input(i)) call.inputs[i].shape = of(*node.input(i));
  return fused_op(node)->infer(call) ? call.outputs.at(0).shape : Shape();
}

Shape Extents::compute(const Value& value) {
  const Node* node = value.producer();
  const Shape shape = node && value.output_index() == 0 ? derived(*node) : Shape();
  const Shape& told = value.shape();
  if (!told.has_rank() && !shape.has_rank()) return {};
  const std::size_t rank = told.has_rank() ? told.rank() : shape.rank();
  const bool agree = shape.has_rank() && shape.rank() == rank;
  std::vector<Dim> dims(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim said = told.has_rank() ? declared(value, i) : Dim();
    if (numeric(said) || !agree || shape[i].unknown()) {
      dims[i] = said;
    } else {
      dims[i] = shape[i];  // also before a symbol: shape inference gives every value symbols of its own
    }
    if (dims[i].unknown()) dims[i] = Dim::symbol("dim(" + value.name() + "|" + std::to_string(i) + ")");
  }
  return Shape(std::move(dims));
}

// In node order, so that no question recurses deeper than one node.
void Extents::prepare(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (const Value* output : node->outputs()) {
      if (output) of(*output);
    }
  }
}

Extents::Extents(const Graph& graph) { prepare(graph); }

Extents::Extents(const Graph& graph, const Context& context) : numbers_(true) {
  if (context.typical) read_typical(context.model, *context.typical);
  prepare(graph);
}

void Extents::read_typical(const Model& model, const std::map<std::string, Dims>& typical) {
  for (const Value* input : model.graph().inputs()) {
    const auto found = typical.find(input->name());
    if (found == typical.end() || !input->shape().has_rank() || input->shape().rank() != found->second.size()) continue;
    input_dims_[input] = found->second;
    for (std::size_t axis = 0; axis < found->second.size(); ++axis) {
      const std::vector<std::string> symbols = input->shape()[axis].symbols();
      if (symbols.size() == 1 && input->shape()[axis] == Dim::symbol(symbols[0]))
        symbols_[symbols[0]] = found->second[axis];
    }
  }
}

Shape Extents::of(const Value& value) {
  if (value.shape().known()) return value.shape();  // nothing is truer than what is declared
  if (const auto found = known_.find(&value); found != known_.end()) return found->second;
  Shape shape = compute(value);
  known_.emplace(&value, shape);
  return shape;
}

double Extents::bytes(const Value& value) {
  const Shape shape = of(value);
  return shape.has_rank() ? (value.dtype() == DType::u8 ? 1 : 4) * shape.known_elements() : 0;
}

Node* only_reader(const Value& value) {
  if (value.uses().size() != 1 || value.is_graph_output()) return nullptr;
  Node* node = value.uses()[0].node;
  return &node->graph() == &value.graph() ? node : nullptr;
}

}  // namespace modelflow::passes
