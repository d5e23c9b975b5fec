// The choice between float32 and floats of 16 bits, node by node.
#include "passes/quantize/half_places.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "passes/graph/facts.h"
#include "src/core/half.h"
#include "src/core/half_ops.h"

namespace modelflow::passes {
namespace {

bool is_one_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return std::ranges::any_of(ops, [&](std::string_view op) { return node.is(op); });
}

bool squares(const Node& node) { return node.is("Pow") || (node.is("Mul") && node.input(0) == node.input(1)); }

/// Whole numbers that float16 does not hold exactly, as positions and lengths are.
bool is_whole(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u32 || dtype == DType::u64 ||
         dtype == DType::i16 || dtype == DType::u16;
}

/// Below so many products a sum may be exact for a reason: positions by frequencies.
constexpr std::int64_t kLeastDepth = 32;

/// As many products as are summed, where that is known.
bool is_short(const Node& node) {
  const Value* a = node.input(0);
  if (!a || !a->shape().has_rank() || a->shape().rank() == 0) return false;
  const bool turned = node.attrs.integer("transA") || node.attrs.integer("trans_a");
  const Shape& shape = a->shape();
  const Dim& depth = turned && shape.rank() > 1 ? shape[shape.rank() - 2] : shape.back();
  return depth.known() && depth.value() < kLeastDepth;
}

/// A program that takes the larger of it and something else, or the smaller: RWKV's first maximum is -1e38.
bool bounds_program(const std::string& program, float number) {
  const auto has = [&](const char* op) { return program.find(op) != std::string::npos; };
  return number < 0 ? has("Max ") || has("AtLeast ") : has("Min ") || has("AtMost ");
}

/// Whose constants bound or hide: what is beyond all numbers of a type is as good as its largest one.
bool bounds(const Node& node, std::string_view attribute, float number) {
  if (node.is("Add")) return number < 0;
  if (node.domain() != kDomain) return is_one_of(node, {"Where", "Clip", "Min", "Max", "Pad"});
  if (attribute.empty()) return bounds_program(node.attrs.text("program"), number);
  const bool clips = node.attrs.text("activation") == "Clip" && (attribute == "alpha" || attribute == "beta");
  return clips || attribute.starts_with("mask_") || attribute == "causal_number";
}

/// Whether a state comes from outside of the model, as it is or moved: the last one of an earlier call.
bool takes_state_of_another_call(const Node& node) {
  const FusedOp& op = *fused_op(node);
  const std::vector<std::string> roles = op.roles ? op.roles(call_of(node)) : op.inputs(call_of(node));
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] != "initial_h" && roles[i] != "initial_c") continue;
    const Value* state = node.input(i);
    while (state && state->producer() && is_view(*state->producer())) state = state->producer()->input(0);
    if (state && !state->producer() && !state->constant()) return true;
  }
  return false;
}

/// By itself or as a line of a program.
bool is_sine(const Node& node) {
  if (is_one_of(node, {"Sin", "Cos"})) return true;
  const std::string program = node.attrs.text("program", "");
  return program.find("Sin ") != std::string::npos || program.find("Cos ") != std::string::npos;
}

}  // namespace

bool is_single(const Value* value) { return value && value->type.is_tensor() && value->dtype() == DType::f32; }

bool varies(const Value* value) { return is_single(value) && !value->constant(); }

bool takes_any(const Node& node) { return is_one_of(node, {"Cast", "Shape", "Size"}); }

bool stays_single(const Node& node, std::size_t i) {
  if (const FusedOp* op = fused_op(node)) return std::ranges::count(op->single, i) > 0;
  const auto row = std::ranges::find(half_ops(), node.op(), &HalfOp::op);
  return row != half_ops().end() && row->single == i;
}

bool multiplies(const Node& node) {
  if (const FusedOp* op = fused_op(node)) {
    if (op->elementwise || op->output_type == DType::u8) return false;
    return op->family != Family::product || !is_short(node);
  }
  if (is_one_of(node, {"MatMul", "Gemm"})) return !is_short(node);
  return is_one_of(node, {"Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "LayerNormalization", "RMSNormalization",
                          "InstanceNormalization", "BatchNormalization", "Softmax", "LogSoftmax", "Einsum"});
}

HalfPlaces::HalfPlaces(Graph& graph, Context& context, DType half) : graph_(graph), context_(context), half_(half) {
  const auto exact = computed_of_integers(), sines = leading_to_sines();
  for (const auto& node : graph.nodes()) {
    if (std::ranges::none_of(node->outputs(), is_single) &&
        (std::ranges::none_of(node->inputs(), is_single) || takes_any(*node)))
      continue;
    Verdict verdict = can(*node);
    if (verdict && exact.contains(node.get())) verdict = no("is computed of whole numbers alone");
    if (verdict && sines.contains(node.get())) verdict = no("leads to a sine of what may be large");
    if (verdict)
      halves_.insert(node.get());
    else if (!takes_any(*node))
      context_.miss("to-half", node.get(), verdict.reason);
  }
  keep_squares();
  keep_roots();
  save_casts();
  if (context.options.precision == Precision::i8) save_islands();
  save_output_casts();
}

/// Finite numbers stay finite, and what is not 0 does not become it.
bool HalfPlaces::holds(float number, bool as_bound) const {
  if (!std::isfinite(number) || number == 0) return true;
  const float size = std::abs(number);
  return (as_bound || size <= largest(half_)) && size > least(half_) / 2;
}

Verdict HalfPlaces::fits(const Tensor& constant, const Node& node) const {
  // Of many weights the least ones are as good as 0; one number is there for what it is.
  const bool many = constant.elements() > 1;
  for (const float number : constant.as<float>())
    if (!holds(number, false) && !(many && std::abs(number) < 1) && !holds(number, bounds(node, "", number)))
      return no("holds " + std::to_string(number) + ", which " + std::string(name(half_)) + " does not");
  return yes();
}

Verdict HalfPlaces::can_fused(const Node& node) const {
  const FusedOp& op = *fused_op(node);
  if (!takes_any_float(op) || op.form == Form::weight_only) return no("is in lower precision already");
  if (takes_state_of_another_call(node)) return no("its state goes on from call to call");
  for (const auto& [attribute, value] : node.attrs)
    if (const auto* number = std::get_if<float>(&value); number && attribute != "epsilon")
      if (!holds(*number, bounds(node, attribute, *number)))
        return no(attribute + " is no number of " + std::string(name(half_)));
  const Call call = in_type(call_of(node), half_);
  const Choice choice = choose_kernel(call, context_.target);
  if (!choice.kernel) return no("no kernel takes it in " + std::string(name(half_)) + ": " + choice.reason);
  return can_write(call, context_.model.opset());
}

Verdict HalfPlaces::can(const Node& node) const {
  const Precision precision = half_ == DType::f16 ? Precision::f16 : Precision::bf16;
  if (!context_.plan->allows(node.name, precision)) return no("is to stay in float32");
  if (!node.subgraphs().empty()) return no("holds graphs of its own");
  if (half_ == DType::bf16 && context_.model.opset() < kFirstWithBf16) return no("bfloat16 needs opset 13");
  if (fused_op(node)) {
    if (Verdict v = can_fused(node); !v) return v;
  } else if (node.is("Cast")) {
    const DType from = node.input(0)->dtype();
    return from == DType::boolean || from == DType::u8 || from == DType::i8
               ? yes()
               : no("makes float32 of " + std::string(name(from)));
  } else {
    if (!node.domain().empty()) return no("is of another domain");
    std::string why;
    const HalfOp* row = half_op(node.op(), half_, context_.model.opset(), why);
    if (!row) return no(why);
    if (node.is("ReduceMean") && node.input(0)->producer() && squares(*node.input(0)->producer()))
      return no("is a mean of squares");
    if (is_one_of(node, {"LayerNormalization", "BatchNormalization"}) && node.outputs().size() > 1)
      return no("its statistics are float32");
  }
  for (std::size_t i = 0; i < node.inputs().size(); ++i)
    if (const Value* value = node.input(i); is_single(value) && value->constant() && !stays_single(node, i))
      if (Verdict v = fits(*value->constant(), node); !v) return v;
  const Tensor* value = node.attrs.tensor("value");
  return value && value->dtype() == DType::f32 ? fits(*value, node) : yes();
}

std::unordered_set<const Node*> HalfPlaces::computed_of_integers() const {
  std::unordered_set<const Node*> exact;
  for (const auto& node : graph_.nodes()) {
    if (!is_single(node->output()) || !node->subgraphs().empty()) continue;
    const auto is_exact = [&](const Value* value) { return exact.contains(value->producer()); };
    std::vector<const Value*> read;
    std::ranges::copy_if(node->inputs(), std::back_inserter(read), varies);
    const bool source = node->is("Range") || (node->is("Cast") && is_whole(node->input(0)->dtype()));
    if (source || (!read.empty() && !multiplies(*node) && std::ranges::all_of(read, is_exact)))
      exact.insert(node.get());
  }
  return exact;
}

std::unordered_set<const Node*> HalfPlaces::leading_to_sines() const {
  std::unordered_set<const Node*> found;
  for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
    const Node& node = **it;
    const auto leads = [&](const Value* value) {
      return value && std::ranges::any_of(value->uses(), [&](const Use& use) { return found.contains(use.node); });
    };
    const bool standard = node.domain().empty() && !multiplies(node) && !node.is("Gather");
    if (is_sine(node) || (standard && std::ranges::any_of(node.outputs(), leads))) found.insert(&node);
  }
  return found;
}

/// Squares leave the range of float16 long before the root of their sum does.
void HalfPlaces::keep_squares() {
  for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
    const Node& node = **it;
    if (!squares(node) || !halves_.contains(&node) || node.output()->uses().empty()) continue;
    const auto sums = [&](const Use& use) { return use.node->op().starts_with("Reduce") && !computes(*use.node); };
    if (std::ranges::all_of(node.output()->uses(), sums)) halves_.erase(&node);
  }
}

/// What sums of squares become by themselves, as roots, shrinks before it meets anything else.
void HalfPlaces::keep_roots() {
  std::unordered_set<const Value*> sums;
  for (const auto& node : graph_.nodes()) {
    std::vector<const Value*> read;
    std::ranges::copy_if(node->inputs(), std::back_inserter(read), varies);
    const bool follows = read.size() == 1 && sums.contains(read[0]) && !multiplies(*node);
    if (follows) halves_.erase(node.get());
    if (follows || (node->op().starts_with("Reduce") && !computes(*node)))
      for (const Value* value : node->outputs())
        if (is_single(value)) sums.insert(value);
  }
}

}  // namespace modelflow::passes
