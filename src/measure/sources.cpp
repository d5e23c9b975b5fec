// Which nodes of an original a node of the result stands for, by the names of values that both have.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "src/measure/draw.h"

namespace modelflow {
namespace {

using Places = std::unordered_map<std::string_view, std::size_t>;

Places places_of_outputs(const GraphReport& graph) {
  Places places;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& output : graph.nodes[i].outputs) places.emplace(output, i);
  return places;
}

class Lineage {
 public:
  Lineage(const GraphReport& before, const Results& plain, const GraphReport& after)
      : before_(before), plain_(plain), outputs_(places_of_outputs(before)) {
    for (const NodeReport& node : after.nodes) {
      ends_.push_back(ends_of(node));
      computed_.insert(ends_.back().begin(), ends_.back().end());
    }
  }

  /// The nodes that compute what `node` computes, as far back as what other nodes of the result compute.
  std::vector<std::size_t> sources(std::size_t node) const {
    std::unordered_set<std::size_t> seen(ends_[node].begin(), ends_[node].end());
    std::vector<std::size_t> left = ends_[node];
    while (!left.empty()) {
      const NodeReport& at = before_.nodes[left.back()];
      left.pop_back();
      for (const std::string& input : at.inputs)
        if (const auto maker = outputs_.find(input); maker != outputs_.end() && !computed_.contains(maker->second))
          if (seen.insert(maker->second).second) left.push_back(maker->second);
    }
    std::vector<std::size_t> sorted(seen.begin(), seen.end());
    std::ranges::sort(sorted);
    return sorted;
  }

 private:
  std::vector<std::size_t> ends_of(const NodeReport& node) const {
    const std::vector<std::size_t> ends = makers_of(node.outputs);
    const auto before = plain_.find(node.name);
    return ends.empty() && before != plain_.end() ? makers_of(before->second) : ends;
  }

  std::vector<std::size_t> makers_of(const std::vector<std::string>& values) const {
    std::vector<std::size_t> makers;
    for (const std::string& value : values)
      if (const auto place = outputs_.find(value); place != outputs_.end()) makers.push_back(place->second);
    return makers;
  }

  const GraphReport& before_;
  const Results& plain_;
  const Places outputs_;
  std::vector<std::vector<std::size_t>> ends_;  ///< by node of the result
  std::unordered_set<std::size_t> computed_;    ///< what some node of the result computes
};

}  // namespace

Results results_of(const Model& model) {
  Results results;
  std::unordered_set<std::string_view> twice;
  for (const auto& node : model.graph().nodes()) {
    const auto [place, fresh] = results.try_emplace(node->name);
    if (!fresh) twice.insert(node->name);
    for (const Value* output : node->outputs())
      if (output && fresh) place->second.push_back(output->name());
  }
  for (const std::string_view name : twice) results.erase(results.find(name));
  results.erase("");
  return results;
}

void find_sources(const GraphReport& before, const Results& plain, GraphReport& after) {
  const Lineage lineage(before, plain, after);
  for (std::size_t i = 0; i < after.nodes.size(); ++i) after.nodes[i].sources = lineage.sources(i);
}

}  // namespace modelflow
