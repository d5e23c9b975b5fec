// Nodes that give back what they read: Identity, Dropout, Casts to the same type, Slices of everything.
#include <algorithm>
#include <cmath>

#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

bool same_type(const Node& node) { return passes::same_type(*node.input(0), *node.output(0)); }

bool all(const std::optional<Ints>& values, std::int64_t wanted) { return values && all_are(*values, wanted); }

bool always(const Node&) { return true; }
bool one_input(const Node& node) { return node.inputs().size() == 1; }

bool no_dropout(const Node& node) {
  if (node.output(1) && (!node.output(1)->uses().empty() || node.output(1)->is_graph_output())) return false;
  return node.attrs.integer("is_test", 1) == 1 &&
         (!node.input(2) || const_number(node.input(2)) == 0.0 || all(const_ints(node.input(2)), 0));
}

bool same_dtype(const Node& node) {
  const DType from = node.input(0)->dtype();
  if (from == DType::undefined) return false;
  if (node.op() == "CastLike") return node.input(1) && node.input(1)->dtype() == from;
  return node.attrs.integer("to") == static_cast<std::int64_t>(from);
}

bool order_kept(const Node& node) {
  const Ints perm = node.attrs.ints("perm");
  if (perm.empty()) {
    const std::optional<std::size_t> rank = rank_of(node.input(0));
    return rank && *rank <= 1;
  }
  return std::is_sorted(perm.begin(), perm.end());
}

/// Whether the axis, if its extent is not known, cannot reach `end`: exporters write 10^9 for "all of it", and with the
/// extents of the other axes that is more than processors can address.
bool beyond_axis(const Value& x, std::size_t axis, std::int64_t end) {
  constexpr double kAddressable = 1LL << 47;  // bytes
  const Dim& dim = x.shape()[axis];
  if (dim.known()) return end >= dim.value();
  return static_cast<double>(end) * x.shape().known_elements() * static_cast<double>(byte_count(x.dtype(), Dims{1})) >
         kAddressable;
}

bool takes_all(const Node& node) {
  const std::optional<Ints> starts = const_ints(node.input(1)), ends = const_ints(node.input(2));
  const auto rank = rank_of(node.input(0));
  if (!rank || !all(starts, 0) || !ends || (node.input(4) && !all(const_ints(node.input(4)), 1))) return false;
  Ints axes;
  for (std::size_t i = 0; i < ends->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (node.input(3)) axes = const_ints(node.input(3)).value_or(Ints{});
  const std::optional<Ints> inside = positive(axes, static_cast<std::int64_t>(*rank));
  if (!inside || inside->size() != ends->size() || starts->size() != ends->size()) return false;
  for (std::size_t i = 0; i < ends->size(); ++i)
    if (!beyond_axis(*node.input(0), static_cast<std::size_t>((*inside)[i]), (*ends)[i])) return false;
  return true;
}

bool whole_slice(const Node& node) {
  if (takes_all(node)) return true;
  if (!same_type(node)) return false;
  if (!node.input(4)) return true;
  const std::optional<Ints> steps = const_ints(node.input(4));
  return steps && std::all_of(steps->begin(), steps->end(), [](std::int64_t s) { return s > 0; });
}

bool no_border(const Node& node) { return all(setting(node, "pads", 1, {1}), 0); }

bool neutral_one(const Node& node) { return const_number(node.input(1)) == 1.0 && same_type(node); }
bool neutral_zero(const Node& node) { return const_number(node.input(1)) == 0.0 && same_type(node); }

bool no_scaling(const Node& node) {
  if (node.attrs.text("coordinate_transformation_mode") == "tf_crop_and_resize" || !same_type(node)) return false;
  if (node.op() == "Upsample" && node.attrs.has("scales")) {
    const Floats scales = node.attrs.floats("scales");
    return std::all_of(scales.begin(), scales.end(), [](float s) { return s == 1; });
  }
  // From opset 11 on: x, roi, scales, sizes; before: x, scales.
  const Value* sizes = node.input(3);
  if (sizes && !(sizes->constant() && sizes->constant()->elements() == 0))
    return node.attrs.text("keep_aspect_ratio_policy", "stretch") == "stretch";
  return const_number(node.input(node.inputs().size() >= 3 ? 2 : 1)) == 1.0;
}

/// Floats are bound all the same: infinities become the lowest and the highest number.
bool no_bounds(const Node& node) {
  const DType dtype = node.input(0)->dtype();
  return dtype != DType::undefined && !is_float(dtype) && !node.input(1) && !node.input(2) && !node.attrs.has("min") &&
         !node.attrs.has("max");
}

bool one_output(const Node& node) { return node.outputs().size() == 1 && same_type(node); }

/// Ops that under a condition give back their first input: every number of it, NaN and infinities included (adding 0
/// may change the sign of a 0). GlobalMaxPool of single pixels is none of them: ONNX Runtime begins with the lowest
/// number.
struct NoOp {
  std::string_view op;
  bool (*holds)(const Node&);
};
constexpr NoOp no_ops[] = {
    {"Identity", always},      {"Dropout", no_dropout},   {"Cast", same_dtype},
    {"CastLike", same_dtype},  {"Reshape", same_type},    {"Flatten", same_type},
    {"Expand", same_type},     {"Tile", same_type},       {"Squeeze", same_type},
    {"Unsqueeze", same_type},  {"Transpose", order_kept}, {"Slice", whole_slice},
    {"Pad", no_border},        {"Concat", one_input},     {"Sum", one_input},
    {"Mean", one_input},       {"Max", one_input},        {"Min", one_input},
    {"Split", one_output},     {"Mul", neutral_one},      {"Div", neutral_one},
    {"Pow", neutral_one},      {"Add", neutral_zero},     {"Sub", neutral_zero},
    {"Resize", no_scaling},    {"Upsample", no_scaling},  {"Clip", no_bounds},
    {"ReduceMean", same_type}, {"ReduceSum", same_type},  {"ReduceMax", same_type},
    {"ReduceMin", same_type},  {"ReduceProd", same_type}, {"GlobalAveragePool", same_type},
};

/// Whether some element may be NaN, as far as the op that made the value says: integers come back finite.
bool may_be_nan(const Value& value) {
  const Node* node = value.producer();
  if (!node || !node->is("DequantizeLinear") || !node->input(1)->constant()) return true;
  const Tensor& scales = *node->input(1)->constant();
  const DType steps = node->input(0)->dtype();
  const bool integers = steps == DType::u4 || steps == DType::i4 || steps == DType::u8 || steps == DType::i8 ||
                        steps == DType::u16 || steps == DType::i16 || steps == DType::i32;
  if (!integers || scales.dtype() != DType::f32) return true;
  const auto all = scales.as<float>();
  return !std::all_of(all.begin(), all.end(), [](float scale) { return std::isfinite(scale); });
}

/// Where(IsNaN(x), ..., y) of an x that never is.
bool keeps_numbers(const Node& where) {
  const Node* test = where.input(0)->producer();
  return test && test->is("IsNaN") && !may_be_nan(*test->input(0)) &&
         passes::same_type(*where.input(2), *where.output(0));
}

/// QuantizeLinear of what DequantizeLinear made by the same scale and zero point: rounding finds the integers again.
bool returns_to_steps(const Node& quantize) {
  const Node* inner = quantize.input(0)->producer();
  if (!inner || !inner->is("DequantizeLinear") || !passes::same_type(*inner->input(0), *quantize.output(0)))
    return false;
  for (std::size_t i = 1; i < 3; ++i) {
    const Value *a = quantize.input(i), *b = inner->input(i);
    if (!a || !b || !a->constant() || !b->constant() || !a->constant()->same_content(*b->constant())) return false;
  }
  const Tensor& scale = *quantize.input(1)->constant();
  if (scale.dtype() != DType::f32 || scale.elements() != 1) return false;
  const float step = scale.as<float>()[0];
  return std::isnormal(step) && step > 0 && std::isfinite(step * 0x1p16f);  // 16 bits at most
}

/// The input that the node gives back unchanged; null when it does something.
Value* given_back(const Node& node) {
  if (!node.domain().empty() || !node.output(0) || !node.input(0)) return nullptr;
  for (const NoOp& rule : no_ops)
    if (node.op() == rule.op && rule.holds(node)) return node.input(0);
  if (node.is("Where")) return keeps_numbers(node) ? node.input(2) : nullptr;
  if (node.is("QuantizeLinear")) return returns_to_steps(node) ? node.input(0)->producer()->input(0) : nullptr;
  // The neutral number may stand first.
  const bool product = node.op() == "Mul", sum = node.op() == "Add";
  if ((product && const_number(node.input(0)) == 1.0) || (sum && const_number(node.input(0)) == 0.0))
    return node.input(1) && passes::same_type(*node.input(1), *node.output(0)) ? node.input(1) : nullptr;
  return nullptr;
}

/// Graph outputs keep their node when there is no other node that could carry the name.
bool can_take_over(const Value& out, const Value& by) {
  if (!out.is_graph_output()) return true;
  return by.producer() && &by.graph() == &out.graph() && !by.is_graph_output() &&
         !by.graph().pinned.contains(by.name());
}

/// An empty list of axes: runtimes drop all of extent 1, ONNX's own inference none, so that folding what comes out as
/// one would break the model. Without a list both drop all.
bool says_no_axes(const Node& node) {
  const Tensor* axes = node.is("Squeeze") && node.input(1) ? node.input(1)->constant() : nullptr;
  return axes && axes->elements() == 0;
}

int remove_no_ops(Graph& graph, Context& context) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  int changes = 0;
  for (Node* node : nodes) {
    if (says_no_axes(*node)) {
      graph.resize_inputs(*node, 1);
      context.hit("no-axes");
      ++changes;
    }
    Value* by = given_back(*node);
    if (!by) continue;
    Value& out = *node->output();
    if (!can_take_over(out, *by)) continue;
    context.hit("no-op-" + node->op());
    graph.replace(out, *by);
    graph.erase(*node);
    ++changes;
  }
  return changes;
}

}  // namespace

Pass identities() {
  return {.name = "identities",
          .doc = "Removes nodes that give back their input unchanged, and empty lists of axes.",
          .run = remove_no_ops};
}

}  // namespace modelflow::passes
