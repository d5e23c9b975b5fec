// Bodies of float16 and bfloat16, made of those of float32.
#include "src/emit/typed_body.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "src/core/half.h"
#include "src/core/half_ops.h"
#include "src/onnx/operators.h"
#include "src/onnx/proto.h"

namespace modelflow {
namespace {

/// Sums of many numbers whose size has no bound; ScatterElements adds in bodies, which a CPU does in float32 alone.
constexpr std::array<std::string_view, 9> kSums = {"ReduceSum",  "ReduceMean",      "ReduceSumSquare",
                                                   "ReduceL1",   "ReduceL2",        "ReduceLogSum",
                                                   "ReduceProd", "ReduceLogSumExp", "ScatterElements"};
/// What is computed element by element beside them.
constexpr std::array<std::string_view, 27> kElementwise = {
    "Add",  "Sub",     "Mul",      "Div",  "Pow",   "Sqrt", "Reciprocal",  "Neg",       "Abs",
    "Exp",  "Log",     "Max",      "Min",  "Sum",   "Erf",  "Tanh",        "Sin",       "Cos",
    "Relu", "Sigmoid", "Softplus", "Clip", "Where", "Sign", "HardSigmoid", "LeakyRelu", "Identity"};

bool is_one_of(const Node& node, std::span<const std::string_view> list) {
  return node.domain().empty() && std::ranges::find(list, node.op()) != list.end();
}

/// The body while it changes type.
class TypedBody {
 public:
  TypedBody(DType type, Graph& body, const Call& call, int opset)
      : type_(type), body_(body), call_(call), opset_(opset) {}

  void run() {
    for (std::size_t i = 0; i < call_.inputs.size(); ++i)
      if (call_.inputs[i].dtype == type_) floats_.insert(body_.inputs().at(i));
    find_floats();
    leave_fixed();
    find_wide();
    std::vector<Node*> nodes;
    for (const auto& node : body_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) change(*node);
    for (Value* output : std::vector<Value*>(body_.outputs()))
      if (floats_.contains(output) && wide_.contains(output->producer())) narrow_output(*output);
    body_.prune();
  }

 private:
  static bool makes_number(const Node& node) {
    if (node.is("Constant") && (node.attrs.has("value_float") || node.attrs.has("value_floats"))) return true;
    const Tensor* value = node.is("Constant") || node.is("ConstantOfShape") ? node.attrs.tensor("value") : nullptr;
    return value && value->dtype() == DType::f32;
  }

  const proto::OpSchema* schema_of(const Node& node) const {
    return proto::OpSchemaRegistry::Schema(node.op(), opset_, node.domain());
  }
  /// What a schema calls the type of an operand; the last formal stands for all that follow.
  static std::string type_of(const std::vector<proto::OpSchema::FormalParameter>& formals, std::size_t i) {
    return formals.empty() ? "" : formals[std::min(i, formals.size() - 1)].GetTypeStr();
  }

  void find_floats() {
    for (const auto& node : body_.nodes()) {
      if (makes_number(*node) || (node->is("Cast") && node->attrs.integer("to") == 1)) {
        floats_.insert(node->output());
        continue;
      }
      const proto::OpSchema* schema = schema_of(*node);
      if (!schema) throw Error(ErrorKind::internal, "a body has an op that its opset has not: " + node->op());
      std::set<std::string> types;
      for (std::size_t i = 0; i < node->inputs().size(); ++i)
        if (floats_.contains(node->input(i))) types.insert(type_of(schema->inputs(), i));
      for (std::size_t i = 0; i < node->outputs().size(); ++i)
        if (node->output(i) && types.contains(type_of(schema->outputs(), i))) floats_.insert(node->output(i));
    }
  }

  /// Values that only operands of no other type than float32 come from (the scales of Resize) are not of the body's
  /// type.
  void leave_fixed() {
    std::set<const Node*> fixed;
    for (auto it = body_.nodes().rbegin(); it != body_.nodes().rend(); ++it) {
      const Value* value = (*it)->output();
      if (!floats_.contains(value) || value->is_graph_output() || value->uses().empty()) continue;
      const auto is_fixed = [&](const Use& use) {
        return fixed.contains(use.node) || type_of(schema_of(*use.node)->inputs(), use.index) == "tensor(float)";
      };
      if (!std::ranges::all_of(value->uses(), is_fixed)) continue;
      fixed.insert(it->get());
      floats_.erase(value);
    }
  }

  /// Whether the op cannot be of the type: ONNX does not allow it at this opset, or no GPU computes it.
  bool is_missing(const Node& node) const {
    const proto::OpSchema& schema = *schema_of(node);
    bool takes_floats = false;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      if (!floats_.contains(node.input(i)) || type_of(schema.inputs(), i) == "tensor(float)") continue;
      if (!allows_input(node, i, type_, opset_)) return true;
      takes_floats = true;
    }
    for (std::size_t i = 0; i < node.outputs().size(); ++i)
      if (floats_.contains(node.output(i)) && !allows_output(node, i, type_, opset_)) return true;
    const bool moves = node.is("Cast") || node.is("Shape") || node.is("Size");
    std::string why;
    return takes_floats && !moves && !half_op(node.op(), type_, opset_, why);
  }

  /// The sums and what cannot be of the type, what follows them element by element, and what only they read.
  void find_wide() {
    const FusedOp* op = find_fused_op(call_.op);
    if (op && (op->family == Family::recurrence || rounds_to_steps(*op))) return find_all();
    for (const auto& node : body_.nodes()) {
      const auto is_wide = [&](const Value* value) { return value && wide_.contains(value->producer()); };
      const bool follows = is_one_of(*node, kElementwise) && std::ranges::any_of(node->inputs(), is_wide);
      const bool sums = node->output() && floats_.contains(node->output()) && (is_one_of(*node, kSums) || follows);
      if (sums || (!makes_number(*node) && is_missing(*node))) wide_.insert(node.get());
    }
    for (auto it = body_.nodes().rbegin(); it != body_.nodes().rend(); ++it) {
      const Node& node = **it;
      if (!is_one_of(node, kElementwise) || !floats_.contains(node.output()) || node.output()->uses().empty()) continue;
      const auto read_wide = [&](const Use& use) { return wide_.contains(use.node); };
      if (!node.output()->is_graph_output() && std::ranges::all_of(node.output()->uses(), read_wide))
        wide_.insert(&node);
    }
  }

  static bool rounds_to_steps(const FusedOp& op) { return op.form == Form::i8 || op.output_type == DType::u8; }

  /// Of a recurrence: what one step rounds would go on in all that follow. Of 8 bits: steps are those of float32, and
  /// their sums are larger than float16 knows.
  void find_all() {
    const auto is_float = [&](const Value* value) { return floats_.contains(value); };
    for (const auto& node : body_.nodes())
      if ((std::ranges::any_of(node->outputs(), is_float) || std::ranges::any_of(node->inputs(), is_float)) &&
          !makes_number(*node))
        wide_.insert(node.get());
  }

  void change(Node& node) {
    const bool wide = wide_.contains(&node);
    if (!wide && node.is("Cast") && node.attrs.integer("to") == 1 && floats_.contains(node.output()))
      node.attrs.set("to", static_cast<std::int64_t>(type_));
    if (makes_number(node)) return;       // changed where it is read
    if (wide && node.is("Cast")) return;  // of any type
    const proto::OpSchema* schema = schema_of(node);
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      Value* value = node.input(i);
      if (!floats_.contains(value) || type_of(schema->inputs(), i) == "tensor(float)") continue;
      const Node* producer = value->producer();
      const bool is_number = producer && makes_number(*producer);
      const bool is_wide = is_number || wide_.contains(producer);
      if (is_wide == wide) continue;
      body_.set_input(node, i, is_number ? &number(*value, node) : &cast(*value, wide ? DType::f32 : type_, node));
    }
  }

  /// A number in the type of the body, finite where it was.
  Value& number(Value& value, Node& reader) {
    const auto [place, fresh] = numbers_.try_emplace(&value, nullptr);
    if (!fresh) return *place->second;
    const Node& from = *value.producer();
    const std::optional<Tensor> literal = said(from);
    if (!literal) return *(place->second = &cast(value, type_, reader));
    Node& made = body_.add(from.op(), from.inputs(),
                           {.before = &reader,
                            .attrs = {{"value", to_half(*literal, type_)}},
                            .name = body_.unique_name(value.name() + "_half")});
    return *(place->second = made.output());
  }

  /// What the body says itself; of what the call says, a number that a Cast would make infinite.
  std::optional<Tensor> said(const Node& node) const {
    if (const Tensor* tensor = node.attrs.tensor("value")) return *tensor;
    const Attr* attr = node.attrs.find("value_float");
    const auto* reference = attr ? std::get_if<AttrRef>(attr) : nullptr;
    if (!reference) return {};
    const float number = call_.attrs.number(reference->name);
    if (!std::isfinite(number) || std::abs(number) <= largest(type_)) return {};
    return Tensor::scalar(number);
  }

  Value& cast(Value& value, DType to, Node& reader) {
    const auto [place, fresh] = casts_.try_emplace(&value, nullptr);
    if (!fresh) return *place->second;
    const char* end = to == DType::f32 ? "_wide" : "_half";
    Node& made = body_.add("Cast", {&value},
                           {.before = &reader,
                            .attrs = {{"to", static_cast<std::int64_t>(to)}},
                            .name = body_.unique_name(value.name() + end)});
    return *(place->second = made.output());
  }

  /// The result is that of a Cast; who else reads it goes on with float32, as far as it did.
  void narrow_output(Value& output) {
    const std::vector<Use> readers = output.uses();
    Node& made = body_.add("Cast", {&output}, {.attrs = {{"to", static_cast<std::int64_t>(type_)}}});
    body_.replace(output, *made.output());
    body_.set_input(made, 0, &output);
    for (const Use& use : readers) body_.set_input(*use.node, use.index, &output);
  }

  const DType type_;
  Graph& body_;
  const Call& call_;
  const int opset_;
  std::set<const Value*> floats_;     ///< in the type of the call, or numbers
  std::set<const Node*> wide_;        ///< that compute in float32
  std::map<Value*, Value*> numbers_;  ///< and what they are in the type of the call
  std::map<Value*, Value*> casts_;
};

}  // namespace

void compute_in(DType type, Function& body, const Call& call, int opset) {
  if (type == DType::bf16 && opset < kFirstWithBf16)
    throw Error(ErrorKind::unsupported, "bfloat16 needs opset " + std::to_string(kFirstWithBf16));
  TypedBody(type, *body.body, call, opset).run();
}

}  // namespace modelflow
