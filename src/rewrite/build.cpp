// What a rule makes of a match: new nodes and constants, undone where it is refused.
#include <algorithm>
#include <utility>

#include "modelflow/error.h"
#include "modelflow/pass.h"
#include "src/onnx/operators.h"

namespace modelflow {

Build::Build(Graph& graph, Node& before, Context& context) : graph_(graph), before_(before), context_(context) {}

Value& Build::op(std::string_view type, std::vector<Value*> inputs, Attrs attrs, std::size_t outputs) {
  Node& node = graph_.add(type, std::move(inputs), {.before = &before_, .outputs = outputs, .attrs = std::move(attrs)});
  made_.push_back(&node);
  if (node.domain().empty() && refusal_) refusal_ = in_opset(node, opset());
  complete(node);
  infer_types(node, context_.model);
  return *node.output();
}

Value& Build::constant(Tensor tensor, std::string_view stem) {
  Value& value = graph_.add_constant(std::move(tensor), stem);
  constants_.push_back(&value);
  return value;
}

int Build::opset() const { return static_cast<int>(context_.model.opset()); }

std::vector<Value*> Build::refuse(Verdict why) {
  refusal_ = std::move(why);
  return {};
}

void Build::undo() {
  for (auto it = made_.rbegin(); it != made_.rend(); ++it) {
    const auto& outputs = (*it)->outputs();
    const auto idle = [](const Value* v) { return !v || (v->uses().empty() && !v->is_graph_output()); };
    if (std::all_of(outputs.begin(), outputs.end(), idle)) graph_.erase(**it);
  }
  for (Value* value : constants_) {
    if (value->uses().empty() && !value->is_graph_output()) graph_.erase(*value);
  }
  made_.clear();
  constants_.clear();
}

Value* Match::operator[](std::string_view variable) const {
  const auto it = values_.find(variable);
  return it == values_.end() ? nullptr : it->second;
}

Value& Match::value(std::string_view variable) const {
  if (Value* value = (*this)[variable]) return *value;
  throw Error(ErrorKind::internal, "the pattern bound no value to '" + std::string(variable) + "'");
}

const Tensor& Match::constant(std::string_view variable) const {
  if (const Tensor* tensor = value(variable).constant()) return *tensor;
  throw Error(ErrorKind::internal,
              "the value that the pattern bound to '" + std::string(variable) + "' is no constant");
}

Node& Match::node(std::string_view label) const {
  const auto it = labels_.find(label);
  if (it != labels_.end()) return *it->second;
  throw Error(ErrorKind::internal, "the pattern bound no node to '" + std::string(label) + "'");
}

}  // namespace modelflow
