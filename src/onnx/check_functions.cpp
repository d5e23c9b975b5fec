// Local functions before anything walks along their calls: none calls itself, and none of them grows without end.
#include <algorithm>
#include <map>
#include <tuple>

#include "modelflow/error.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {
namespace {

constexpr std::size_t kMaxFunctions = 10'000;

using FunctionId = std::tuple<std::string, std::string, std::string>;

/// What one body, or the main graph, holds of its own.
struct Body {
  double nodes = 0;
  std::map<std::size_t, double> calls;  // function -> how often
};

void collect(const Graph& graph, const std::map<FunctionId, std::size_t>& ids, Body& body) {
  for (const auto& node : graph.nodes()) {
    const auto found = ids.find({node->domain(), node->op(), node->overload});
    if (found == ids.end())
      ++body.nodes;
    else
      ++body.calls[found->second];
    for (const Graph* inner : node->subgraphs()) collect(*inner, ids, body);
  }
}

/// How deep the calls below a function go, and what it is with all of them written out.
class Expansion {
 public:
  struct Size {
    int depth = 0;  // 0: not known yet, -1: on the way here
    double nodes = 0;
  };

  Expansion(const Model& model, const Limits& limits, std::vector<Body> bodies)
      : model_(model), limits_(limits), bodies_(std::move(bodies)), sizes_(bodies_.size()) {}

  /// `level`: how many calls lead here. The recursion is no deeper than the limit.
  const Size& of(std::size_t function, int level = 1) {
    Size& size = sizes_[function];
    if (size.depth < 0) {
      throw Error(ErrorKind::invalid_input,
                  "local function '" + model_.functions[function].name + "' calls itself, directly or indirectly");
    }
    if (level + std::max(0, size.depth - 1) > limits_.max_depth) {
      throw Error(ErrorKind::limit, "local functions call each other more than " + std::to_string(limits_.max_depth) +
                                        " levels deep (max_depth)");
    }
    if (size.depth > 0) return size;
    size.depth = -1;
    int deepest = 0;
    const double nodes = total(bodies_[function], level, deepest);
    size = {deepest + 1, nodes};
    return size;
  }

  /// Nodes of a body with all calls written out.
  double total(const Body& body, int level, int& deepest) {
    double nodes = body.nodes;
    for (const auto& [callee, times] : body.calls) {
      const Size& size = of(callee, level + 1);
      deepest = std::max(deepest, size.depth);
      nodes += times * size.nodes;
    }
    return nodes;
  }

 private:
  const Model& model_;
  const Limits& limits_;
  std::vector<Body> bodies_;
  std::vector<Size> sizes_;
};

std::map<FunctionId, std::size_t> indices(const Model& model) {
  if (model.functions.size() > kMaxFunctions)
    throw Error(ErrorKind::limit, "more than " + std::to_string(kMaxFunctions) + " local functions");
  std::map<FunctionId, std::size_t> ids;
  for (std::size_t i = 0; i < model.functions.size(); ++i) {
    const Function& function = model.functions[i];
    if (!ids.emplace(FunctionId{function.domain, function.name, function.overload}, i).second)
      throw Error(ErrorKind::invalid_input, "local function '" + function.name + "' is there twice");
  }
  return ids;
}

}  // namespace

void check_functions(const Model& model, const Limits& limits) {
  const std::map<FunctionId, std::size_t> ids = indices(model);
  std::vector<Body> bodies(model.functions.size());
  for (std::size_t i = 0; i < bodies.size(); ++i) collect(*model.functions[i].body, ids, bodies[i]);
  Expansion expansion(model, limits, std::move(bodies));
  for (std::size_t i = 0; i < model.functions.size(); ++i) expansion.of(i);
  Body main;
  collect(model.graph(), ids, main);
  int ignored = 0;
  const double nodes = expansion.total(main, 0, ignored);
  if (nodes > static_cast<double>(limits.max_nodes)) {
    throw Error(ErrorKind::limit, "with the calls of its local functions written out it has more than " +
                                      std::to_string(limits.max_nodes) + " nodes (max_nodes)");
  }
}

}  // namespace modelflow::proto
