// Pooling, resizing and transposed convolution channels last: no standard op does them in this order, ours do.
#include <algorithm>
#include <cmath>

#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/graph/shuffle.h"
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

using Outputs = std::vector<Value*>;

/// Whether some kernel runs this call on the channels-last form of the node's inputs, and the model's opset can say it;
/// a refusal is noted as a miss.
bool runs(const Node& node, Facts& facts, std::string op, const Attrs& attrs, std::size_t inputs) {
  const FusedOp* fused = find_fused_op(op);
  Call call{std::move(op), fused ? fused->defaults : Attrs(), {}, {}};
  for (const auto& [name, value] : attrs) call.attrs.set(name, value);
  for (std::size_t i = 0; i < inputs; ++i) {
    const Value& value = *node.input(i);
    call.inputs.push_back({value.name(), value.dtype(), value.shape(), value.constant()});
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!call.inputs[i].constant) call.inputs[i].shape = last_shape(facts.extents.of(*node.input(i)));
  }
  Verdict verdict = fused ? fused->infer(call) : no("not an op of this build");
  if (verdict) verdict = can_write(call, facts.context.model.opset());
  if (verdict) {
    const Choice choice = choose_kernel(call, facts.context.target);
    if (choice.kernel) return true;
    verdict = no(choice.reason);
  }
  facts.context.miss("channels-last", &node, verdict.reason);
  return false;
}

Role role_for(const std::string& op, const Attrs& attrs, std::size_t inputs) {
  Role role{.inputs = {0}};
  role.make = [op = "modelflow." + op, attrs, inputs](Move& move) {
    const std::vector<Value*> operands(move.inputs.begin(), move.inputs.begin() + static_cast<std::ptrdiff_t>(inputs));
    return Outputs{move.add(op, operands, attrs).output()};
  };
  return role;
}

/// Whatever the node is called, it averages over all spatial axes.
std::optional<Role> global(const Node& node, Facts& facts) {
  Attrs attrs{{"mode", std::string("global_average")}, {"count_include_pad", std::int64_t{0}}};
  for (const char* name : {"kernel_shape", "strides", "pads"}) attrs.set(name, Ints{});
  if (!runs(node, facts, "Pool", attrs, 1)) return {};
  return role_for("Pool", attrs, 1);
}

std::optional<Role> pool_role(const Node& node, Facts& facts) {
  const std::size_t rank = facts.rank(node.input(0));
  if (rank < 3 || node.outputs().size() != 1) return {};
  if (node.is("GlobalAveragePool")) return global(node, facts);
  const std::string auto_pad = node.attrs.text("auto_pad", "NOTSET");
  if (!all_are(node.attrs.ints("dilations"), 1)) return {};
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return {};
  const Ints pads(2 * (rank - 2), 0);
  Attrs attrs{{"mode", std::string(node.is("MaxPool") ? "max" : "average")}};
  attrs.set("kernel_shape", node.attrs.ints("kernel_shape"));
  attrs.set("strides", node.attrs.ints("strides", Ints(rank - 2, 1)));
  attrs.set("pads", auto_pad == "VALID" ? pads : node.attrs.ints("pads", pads));
  for (const char* name : {"ceil_mode", "count_include_pad"}) attrs.set(name, Attr(node.attrs.integer(name)));
  const std::string op = node.input(0)->dtype() == DType::u8 ? "QPool" : "Pool";
  if (!runs(node, facts, op, attrs, 1)) return {};
  return role_for(op, attrs, 1);
}

/// Channels side by side. The runtime copies them one pixel after the other on one thread.
std::optional<Role> concat_role(const Node& node, Facts& facts) {
  if (facts.rank(node.input(0)) != 4) return {};
  const std::int64_t axis = node.attrs.integer("axis");
  const std::size_t count = node.inputs().size();
  if ((axis != 1 && axis != -3) || count < 2 || count > 8) return {};
  for (const Value* input : node.inputs()) {
    if (facts.rank(input) != 4 || input->is_initializer()) return {};
  }
  const Attrs attrs{{"factors", Ints(2 * count, 1)}};
  if (!runs(node, facts, "Concat", attrs, count)) return {};
  Role role = role_for("Concat", attrs, count);
  for (std::size_t i = 1; i < count; ++i) role.inputs.push_back(i);
  return role;
}

/// Channels in turn from groups of them (see shuffle-channels), which standard ops pick one after the other.
std::optional<Role> shuffle_role(const Node& node, Facts& facts) {
  const Tensor* order = node.input(1) ? node.input(1)->constant() : nullptr;
  if (facts.rank(node.input(0)) != 4 || node.attrs.integer("axis") != 1 || !order || order->rank() != 1) return {};
  const std::int64_t groups = groups_of(order->to_ints());
  if (groups < 2 || facts.extents.of(*node.input(0))[1].number() != order->elements()) return {};  // all of them
  const Attrs attrs{{"factors", Ints{1, 1}}, {"groups", Ints{groups}}};
  if (!runs(node, facts, "Concat", attrs, 1)) return {};
  return role_for("Concat", attrs, 1);
}

/// By constant weights, one group.
std::optional<Role> conv_transpose_role(const Node& node, Facts& facts) {
  if (!fixed_windows(node)) return {};
  const bool biased = node.input(2) != nullptr;
  const std::size_t axes = node.input(1)->constant()->rank() - 2;
  Attrs attrs{{"strides", node.attrs.ints("strides", Ints(axes, 1))}, {"has_bias", std::int64_t{biased}}};
  if (!windows_apart(node)) {
    const bool none = node.attrs.text("auto_pad") == "VALID";
    attrs.set("pads", none ? Ints(2 * axes, 0) : node.attrs.ints("pads", Ints(2 * axes, 0)));
    attrs.set("output_padding", node.attrs.ints("output_padding", Ints(axes, 0)));
  }
  const std::size_t inputs = biased ? 3 : 2;
  if (!runs(node, facts, "ConvTranspose", attrs, inputs)) return {};
  Role role = role_for("ConvTranspose", attrs, inputs);
  role.make = [make = std::move(role.make)](Move& move) {
    for (std::size_t i = 1; i < move.inputs.size(); ++i) move.inputs[i] = in_graph(move.graph, move.inputs[i]);
    return make(move);
  };
  // Measured: the runtime's own takes several times as long, mostly for moving columns to images.
  role.plain_cost = facts.context.target.stream(4 * facts.typical.bytes(*node.output()));
  return role;
}

/// A fused op that has both orders.
std::optional<Role> fused_role(const Node& node, Facts& facts) {
  const FusedOp& op = *fused_op(node);
  const bool conv = op.family == Family::convolution;
  // What has an order on either side, and is no convolution, takes Transposes in as it is (absorb-transposes).
  if (conv ? facts.rank(weights_in(node)) < 3 : op.layouts.size() != 1) return {};
  Attrs attrs = node.attrs;
  for (const std::string_view layout : op.layouts) {
    if (attrs.text(layout) == "NHWC") return {};
    attrs.set(std::string(layout), "NHWC");
  }
  if (!runs(node, facts, node.op(), attrs, node.inputs().size())) return {};
  Role role = role_for(node.op(), attrs, node.inputs().size());
  if (const auto residual = place_of(node, "residual")) role.inputs.push_back(*residual);
  role.always = conv;
  if (op.family == Family::transposed_convolution)  // fast channels last only
    role.plain_cost = facts.context.target.stream(100 * facts.typical.bytes(*node.output()));
  return role;
}

/// The factor by which nearest neighbours repeat along an axis; 0 when they do not just repeat.
std::int64_t repeats(const Node& node, std::size_t axis, Facts& facts) {
  const Value* scales = node.input(node.inputs().size() > 2 ? 2 : 1);
  if (scales && scales->constant() && scales->constant()->dtype() == DType::f32 && !node.input(3)) {
    const auto factors = scales->constant()->as<float>();
    const float factor = axis < factors.size() ? factors[axis] : 0;
    const bool whole = factor >= 1 && factor < 1e6F && factor == std::floor(factor);
    return whole ? static_cast<std::int64_t>(factor) : 0;
  }
  const Shape in = facts.extents.of(*node.input(0)), out = facts.extents.of(*node.output());
  if (!out.has_rank() || axis >= out.rank()) return 0;
  if (in[axis] == out[axis]) return 1;  // a batch that has a name, and sizes that are computed with it
  if (!in[axis].known() || !out[axis].known()) return 0;
  const std::int64_t from = in[axis].value(), to = out[axis].value();
  return from > 0 && to % from == 0 ? to / from : 0;
}

/// Whole factors, and a rule for the middle that comes out as plain repetition.
std::optional<Ints> whole_factors(const Node& node, std::size_t rank, Facts& facts) {
  if (!node.is("Resize") || facts.context.model.opset() < 11 || node.attrs.text("mode", "nearest") != "nearest")
    return {};
  Ints factors;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t factor = repeats(node, axis, facts);
    if (factor < 1 || (axis < 2 && factor != 1)) return {};
    if (axis >= 2) factors.push_back(factor);
  }
  const std::string where = node.attrs.text("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = node.attrs.text("nearest_mode", "round_prefer_floor");
  const bool floors =
      where == "asymmetric" &&
      (nearest == "floor" ||
       (nearest == "round_prefer_floor" && std::all_of(factors.begin(), factors.end(), [](auto f) { return f <= 2; })));
  const bool rounds = where == "half_pixel" && nearest.starts_with("round");
  if (!floors && !rounds) return {};
  return factors;
}

/// scales or sizes in the order of the channels-last axes.
Tensor reordered(const Tensor& values) {
  const Ints perm = to_last(static_cast<std::size_t>(values.elements()));
  return Tensor::make(values.dtype(), values.dims(), [&](std::byte* out) {
    const std::size_t width = static_cast<std::size_t>(bits(values.dtype())) / 8;
    for (std::size_t i = 0; i < perm.size(); ++i)
      std::copy_n(values.data() + static_cast<std::size_t>(perm[i]) * width, width, out + i * width);
  });
}

/// Whether these scales or sizes leave batch and channels alone: else the axes may be in another order already.
bool resizes_space(const Tensor& list, const Shape& x) {
  if (list.dtype() == DType::f32) return list.as<float>()[0] == 1 && list.as<float>()[1] == 1;
  const Ints sizes = list.to_ints();
  return x.has_rank() && x[1].number() == sizes[1];
}

/// What ONNX Runtime's own Resize does channels last, and not slowly.
bool permutable(const Node& node, std::size_t rank, Facts& facts) {
  const std::string mode = node.attrs.text("mode", "nearest");
  if (mode != "nearest" && !(mode == "linear" && rank == 4)) return false;
  for (std::size_t i = 1; i < node.inputs().size(); ++i) {
    const Value* input = node.input(i);
    if (!input) continue;
    if (!input->constant()) return false;
    const std::int64_t count = input->constant()->elements();
    if (count != 0 && count != static_cast<std::int64_t>(rank)) return false;
    if (i == 1 && count != 0 && node.inputs().size() > 2) return false;  // a roi
    if (count != 0 && !resizes_space(*input->constant(), facts.extents.of(*node.input(0)))) return false;
  }
  return true;
}

}  // namespace

std::optional<Role> global_pool_role(const Node& node, Facts& facts) { return global(node, facts); }

std::optional<Role> image_reduction_role(const Node& node, Facts& facts) {
  const auto axes = static_cast<std::int64_t>(facts.rank(node.input(0))) - 2;
  const Attrs attrs{{"axis", -axes - 1},
                    {"axes", axes},
                    {"keepdims", node.attrs.integer("keepdims", 1)},
                    {"program", node.op() + " x0"}};
  if (!runs(node, facts, "Reduce", attrs, 1)) return {};
  return role_for("Reduce", attrs, 1);
}

std::optional<Role> window_role(const Node& node, Facts& facts) {
  if (node.is("Concat")) return concat_role(node, facts);
  if (node.is("Gather")) return shuffle_role(node, facts);
  if (fused_op(node)) return fused_role(node, facts);
  if (node.is("ConvTranspose")) return conv_transpose_role(node, facts);
  if (node.is("MaxPool") || node.is("AveragePool") || node.is("GlobalAveragePool")) return pool_role(node, facts);
  return {};
}

std::optional<Role> resize_role(const Node& node, Facts& facts) {
  if (!node.is("Resize") && !node.is("Upsample")) return {};
  const std::size_t rank = facts.rank(node.input(0));
  if (rank < 3 || node.inputs().size() < 2 || node.attrs.has("axes") || node.attrs.integer("antialias")) return {};
  if (node.attrs.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return {};
  const double pass = facts.context.target.stream(facts.typical.bytes(*node.output()));
  if (const std::optional<Ints> factors = whole_factors(node, rank, facts)) {
    const Attrs attrs{{"factors", *factors}};
    const std::string op = node.input(0)->dtype() == DType::u8 ? "QUpsample" : "Upsample";
    if (runs(node, facts, op, attrs, 1)) {
      Role role = role_for(op, attrs, 1);
      role.plain_cost = 3 * pass;  // measured against the runtime's own
      return role;
    }
  }
  if (!permutable(node, rank, facts)) return {};
  Role role{.inputs = {0}};
  // Measured in ONNX Runtime: nearest costs twice as much channels last, linear a quarter.
  (node.attrs.text("mode", "nearest") == "linear" ? role.plain_cost : role.last_cost) = 4 * pass;
  role.make = [](Move& move) {
    std::vector<Value*> inputs = move.inputs;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i] && inputs[i]->constant()->elements() > 0)
        inputs[i] = &move.constant(reordered(*inputs[i]->constant()));
    }
    return Outputs{move.add(move.node.op(), std::move(inputs), move.node.attrs).output()};
  };
  return role;
}

}  // namespace modelflow::passes
