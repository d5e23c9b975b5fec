// The minimum cut of a graph: two parts at the least cost.
#pragma once

#include <cstddef>
#include <vector>

namespace modelflow::passes {

/// Splits nodes into two sides at the least total cost (maximum flow by Dinic's algorithm, exact).
///
///     Cut cut;
///     std::size_t a = cut.node(5, 0), b = cut.node(0, 3);   // a costs 5 on the far side, b costs 3 on the near side
///     cut.edge(a, b, 1, 1);                                 // and 1 when they are on different sides
///     cut.solve();
///     cut.far(a);                                           // false
class Cut {
 public:
  Cut() : graph_(2) {}
  /// A node and what it costs when it ends up on the far side or on the near side.
  std::size_t node(double on_far_side = 0, double on_near_side = 0);
  /// More cost for one side of a node made before.
  void add(std::size_t node, double on_far_side, double on_near_side);
  /// Cost when `a` is on the near side and `b` on the far side, and the other way round.
  void edge(std::size_t a, std::size_t b, double near_far, double far_near);
  void solve();
  bool far(std::size_t node) const { return !near_[node]; }

 private:
  struct Arc {
    std::size_t to, back;
    double room;
  };
  static constexpr std::size_t kNear = 0, kFar = 1;
  bool levels();
  double push(std::size_t from, double limit);

  std::vector<std::vector<Arc>> graph_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
  std::vector<bool> near_;
};

}  // namespace modelflow::passes
