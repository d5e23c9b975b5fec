// Calls of local functions: operands, results, and what they may leave out.
#include <onnx/defs/schema.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "modelflow/error.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {
namespace {

/// A call has no more operands and results than its function, and what it leaves out is optional wherever the body
/// reads it: in place of the call the body would be invalid.
class Calls {
 public:
  explicit Calls(const Model& model) {
    for (const Function& function : model.functions)
      functions_.emplace(std::tuple(function.domain, function.name, function.overload), &function);
  }

  void check(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (const Function* function = callee(*node)) check(*node, *function);
      for (const Graph* inner : node->subgraphs()) check(*inner);
    }
  }

 private:
  const Function* callee(const Node& node) const {
    const auto found = functions_.find({node.domain(), node.op(), node.overload});
    return found == functions_.end() ? nullptr : found->second;
  }

  void check(const Node& call, const Function& function) {
    const auto& formal = function.body->inputs();
    at_most(formal.size(), call.inputs(), "inputs", call, function);
    at_most(function.body->outputs().size(), call.outputs(), "outputs", call, function);
    for (std::size_t i = 0; i < formal.size(); ++i) {
      if (call.input(i) || !needed(*formal[i], function)) continue;
      throw Error(ErrorKind::invalid_input, call.label() + " leaves out input '" + formal[i]->name() +
                                                "', which the body of " + function.name + " needs");
    }
  }

  static void at_most(std::size_t most, std::vector<Value*> given, const char* what, const Node& call,
                      const Function& function) {
    while (!given.empty() && !given.back()) given.pop_back();
    if (given.size() > most)
      throw Error(ErrorKind::invalid_input, call.label() + " has " + std::to_string(given.size()) + " " + what + ", " +
                                                function.name + " takes " + std::to_string(most));
  }

  bool needed(const Value& formal, const Function& function) {
    if (const auto found = needed_.find(&formal); found != needed_.end()) return found->second;
    bool any = formal.is_graph_output();
    for (const Use& use : formal.uses()) {
      if (any) break;
      const Function* other = callee(*use.node);
      any = other ? use.index < other->body->inputs().size() && needed(*other->body->inputs()[use.index], *other)
                  : required(*use.node, use.index, function);
    }
    return needed_[&formal] = any;
  }

  static bool required(const Node& node, std::size_t index, const Function& function) {
    const auto import = function.opsets.find(node.domain());
    if (import == function.opsets.end()) return false;
    const auto* schema = OpSchemaRegistry::Schema(node.op(), static_cast<int>(import->second), node.domain());
    if (!schema || schema->inputs().empty()) return false;
    const auto& formal = schema->inputs()[std::min(index, schema->inputs().size() - 1)];
    return formal.GetOption() != OpSchema::Optional;
  }

  std::map<std::tuple<std::string, std::string, std::string>, const Function*> functions_;
  std::unordered_map<const Value*, bool> needed_;
};

}  // namespace

void check_calls(const Model& model) {
  Calls calls(model);
  for (const Function& function : model.functions) calls.check(*function.body);
  calls.check(model.graph());
}

}  // namespace modelflow::proto
