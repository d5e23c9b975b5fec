// Fused nodes become calls of local functions, and back.
#include "src/emit/emit.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "modelflow/function.h"
#include "modelflow/weights.h"
#include "src/emit/body.h"

namespace modelflow {
namespace {

/// A fused node and what its function says behind the name; the text stays with the pool.
struct Called {
  Node* node;
  const FusedOp* op;
  const std::string* text;
};

/// Hands out the names of one pool, one for each distinct body, the most used first.
class Pool {
 public:
  /// The text of the body, kept once.
  const std::string* count(std::string text) {
    const auto [body, fresh] = bodies_.try_emplace(std::move(text));
    if (fresh) order_.push_back(&*body);
    ++body->second.uses;
    return &body->first;
  }
  void rank() {
    std::ranges::stable_sort(order_, std::greater(), [](const auto* body) { return body->second.uses; });
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i]->second.index = static_cast<int>(i);
  }
  int index(const std::string& text) const { return bodies_.at(text).index; }

 private:
  struct Use {
    int uses = 0, index = 0;
  };
  std::map<std::string, Use> bodies_;
  std::vector<std::pair<const std::string, Use>*> order_;  // of appearance, then of use
};

class Emitter {
 public:
  explicit Emitter(Model& model) : model_(model) {}

  void run() {
    collect(model_.graph());
    for (auto& [owner, pool] : pools_) pool.rank();
    for (const Called& called : calls_) emit(called);
    if (written_.empty()) return;
    model_.opsets[std::string(kDomain)] = 1;
    unlist_weights(model_.graph(), model_.ir_version);
    model_.ir_version = std::max<std::int64_t>(model_.ir_version, 8);
  }

 private:
  void collect(Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (Graph* inner : node->subgraphs()) collect(*inner);
      const FusedOp* op = fused_op(*node);
      if (!op) continue;
      settle(*node);
      Pool& pool = pools_[&pool_of(*op)];
      calls_.push_back({node.get(), op, pool.count(body_text(*op, call_of(*node), static_cast<int>(model_.opset())))});
    }
  }

  void emit(const Called& called) {
    Node& node = *called.node;
    const FusedOp& owner = pool_of(*called.op);
    const int index = pools_.at(&owner).index(*called.text);
    const std::string name = pool_name(owner.kind, index);
    if (index >= owner.names) {
      inline_call(node, make_function(name, *called.text, model_.opset()));
      return;
    }
    if (written_.insert(name).second) model_.functions.push_back(make_function(name, *called.text, model_.opset()));
    if (called.op != &owner) node.attrs.set(kPrecision, std::string(modelflow::name(called.op->form)));
    node.graph().set_op(node, std::string(kDomain) + "." + name);
  }

  Model& model_;
  std::vector<Called> calls_;  // in the order of the graph
  std::map<const FusedOp*, Pool> pools_;
  std::set<std::string> written_;
};

}  // namespace

void emit_functions(Model& model) { Emitter(model).run(); }

}  // namespace modelflow
