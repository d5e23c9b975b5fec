#include "src/emit/emit.h"

#include <map>
#include <set>

#include "modelflow/function.h"
#include "src/emit/body.h"

namespace modelflow {
namespace {

/// Hands out the names of one kind, one per distinct body.
struct Pool {
  std::map<std::string, int> names;  // body text -> index
};

class Emitter {
 public:
  explicit Emitter(Model& model) : model_(model) {}

  void run() {
    visit(model_.graph());
    if (!emitted_) return;
    model_.opsets[std::string(kDomain)] = 1;
    if (model_.ir_version < 8) raise_ir();
  }

 private:
  void visit(Graph& graph) {
    for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
      Node& node = **it++;  // emit may erase it
      for (Graph* inner : node.subgraphs()) visit(*inner);
      if (node.domain() == kDomain && find_fused_op(node.op())) emit(node);
    }
  }

  void emit(Node& node) {
    const FusedOp& op = *find_fused_op(node.op());
    settle(node);
    const std::string text = body_text(op, call_of(node), static_cast<int>(model_.opset()));
    Pool& pool = pools_[op.kind];
    const auto [entry, fresh] = pool.names.emplace(text, static_cast<int>(pool.names.size()));
    const int index = entry->second;
    const std::string name = pool_name(op.kind, index);
    if (index >= op.names) {
      inline_call(node, make_function(name, text, model_.opset()));
      return;
    }
    if (fresh) model_.functions.push_back(make_function(name, text, model_.opset()));
    node.graph().set_op(node, std::string(kDomain) + "." + name);
    emitted_ = true;
  }

  // Before IR 4 an initializer had to be listed as an input although nobody could override it; from IR 4 on the list
  // means that callers may, which would forbid packing the weights.
  void raise_ir() {
    if (model_.ir_version < 4) {
      Graph& graph = model_.graph();
      for (std::size_t i = graph.inputs().size(); i-- > 0;)
        if (graph.inputs()[i]->is_initializer()) graph.remove_input(i);
    }
    model_.ir_version = 8;
  }

  Model& model_;
  std::map<std::string_view, Pool> pools_;
  bool emitted_ = false;
};

}  // namespace

void emit_functions(Model& model) { Emitter(model).run(); }

}  // namespace modelflow
