#include "src/emit/emit.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "modelflow/function.h"
#include "src/emit/body.h"

namespace modelflow {
namespace {

/// A fused node and what its function says behind the name.
struct Called {
  Node* node;
  const FusedOp* op;
  std::string text;
};

/// Hands out the names of one pool, one for each distinct body, the most used first.
class Pool {
 public:
  void count(const std::string& text) {
    if (++uses_[text] == 1) order_.push_back(text);
  }
  void rank() {
    std::ranges::stable_sort(order_, std::greater(), [&](const std::string& text) { return uses_.at(text); });
  }
  /// Nothing where the names have run out.
  std::optional<int> index(const std::string& text, int names) const {
    const auto at = static_cast<int>(std::ranges::find(order_, text) - order_.begin());
    return at < names ? std::optional(at) : std::nullopt;
  }

 private:
  std::map<std::string, int> uses_;
  std::vector<std::string> order_;
};

class Emitter {
 public:
  explicit Emitter(Model& model) : model_(model) {}

  void run() {
    collect(model_.graph());
    for (const Called& called : calls_) pools_[&pool_of(*called.op)].count(called.text);
    for (auto& [owner, pool] : pools_) pool.rank();
    for (const Called& called : calls_) emit(called);
    if (written_.empty()) return;
    model_.opsets[std::string(kDomain)] = 1;
    if (model_.ir_version < 8) raise_ir();
  }

 private:
  void collect(Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (Graph* inner : node->subgraphs()) collect(*inner);
      const FusedOp* op = fused_op(*node);
      if (!op) continue;
      settle(*node);
      calls_.push_back({node.get(), op, body_text(*op, call_of(*node), static_cast<int>(model_.opset()))});
    }
  }

  void emit(const Called& called) {
    Node& node = *called.node;
    const FusedOp& owner = pool_of(*called.op);
    const std::optional<int> index = pools_[&owner].index(called.text, owner.names);
    const std::string name = pool_name(owner.kind, index.value_or(0));
    if (!index) {
      inline_call(node, make_function(name, called.text, model_.opset()));
      return;
    }
    if (written_.insert(name).second) model_.functions.push_back(make_function(name, called.text, model_.opset()));
    if (called.op != &owner) node.attrs.set(kPrecision, std::string(modelflow::name(called.op->form)));
    node.graph().set_op(node, std::string(kDomain) + "." + name);
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
  std::vector<Called> calls_;  // in the order of the graph
  std::map<const FusedOp*, Pool> pools_;
  std::set<std::string> written_;
};

}  // namespace

void emit_functions(Model& model) { Emitter(model).run(); }

}  // namespace modelflow
