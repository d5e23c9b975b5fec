// The minimum cut of a graph by Dinic's algorithm.
#include "passes/graph/cut.h"

#include <algorithm>
#include <limits>

namespace modelflow::passes {
namespace {

constexpr double kNothing = 1e-15;  // seconds; below that an arc is full

}  // namespace

std::size_t Cut::node(double on_far_side, double on_near_side) {
  graph_.emplace_back();
  const std::size_t made = graph_.size() - 1;
  add(made, on_far_side, on_near_side);
  return made;
}

void Cut::add(std::size_t node, double on_far_side, double on_near_side) {
  edge(kNear, node, on_far_side, 0);
  edge(node, kFar, on_near_side, 0);
}

void Cut::edge(std::size_t a, std::size_t b, double near_far, double far_near) {
  if (near_far <= 0 && far_near <= 0) return;
  graph_[a].push_back({b, graph_[b].size(), near_far});
  graph_[b].push_back({a, graph_[a].size() - 1, far_near});
}

bool Cut::levels() {
  level_.assign(graph_.size(), -1);
  level_[kNear] = 0;
  std::vector<std::size_t> queue = {kNear};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Arc& arc : graph_[queue[i]]) {
      if (arc.room <= kNothing || level_[arc.to] >= 0) continue;
      level_[arc.to] = level_[queue[i]] + 1;
      queue.push_back(arc.to);
    }
  }
  return level_[kFar] >= 0;
}

// Walks one augmenting path with an explicit stack: graphs of 100000 nodes are real.
double Cut::push(std::size_t from, double limit) {
  std::vector<std::size_t> path = {from};
  while (!path.empty()) {
    const std::size_t at = path.back();
    if (at == kFar) break;
    std::size_t& next = next_[at];
    while (next < graph_[at].size() &&
           (graph_[at][next].room <= kNothing || level_[graph_[at][next].to] != level_[at] + 1))
      ++next;
    if (next < graph_[at].size()) {
      path.push_back(graph_[at][next].to);
    } else {
      path.pop_back();
      if (!path.empty()) ++next_[path.back()];
    }
  }
  if (path.empty()) return 0;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) limit = std::min(limit, graph_[path[i]][next_[path[i]]].room);
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    Arc& arc = graph_[path[i]][next_[path[i]]];
    arc.room -= limit;
    graph_[arc.to][arc.back].room += limit;
  }
  return limit;
}

void Cut::solve() {
  while (levels()) {
    next_.assign(graph_.size(), 0);
    while (push(kNear, std::numeric_limits<double>::infinity()) > 0) {
    }
  }
  near_.assign(graph_.size(), false);
  for (std::size_t i = 0; i < graph_.size(); ++i) near_[i] = level_[i] >= 0;  // reachable in the residual graph
}

}  // namespace modelflow::passes
