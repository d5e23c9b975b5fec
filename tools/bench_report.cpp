#include "bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

namespace modelflow::tools {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::map<std::string, double> by_op(const std::vector<NodeTime>& nodes) {
  std::map<std::string, double> total;
  for (const NodeTime& node : nodes) total[node.op] += node.seconds;
  return total;
}

}  // namespace

double Side::percentile(double percent) const {
  if (latencies.empty()) return 0;
  std::vector<double> sorted = latencies;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

double Side::speedup_over(const Side& first) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(medians.size(), first.medians.size()); ++i)
    ratios.push_back(first.medians[i] / medians[i]);
  return median(ratios);
}

std::string text_report(const std::vector<Side>& sides, std::size_t top_nodes) {
  std::string out = fmt::format("{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>9}\n", "side", "p50 ms", "p90 ms",
                                "p99 ms", "mean ms", "runs/s", "load ms", "speedup");
  for (const Side& side : sides)
    out += fmt::format("{:<28.28}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.1f}{:>10.1f}{:>8.2f}x\n", side.name,
                       side.percentile(50) * 1e3, side.percentile(90) * 1e3, side.percentile(99) * 1e3,
                       mean(side.latencies) * 1e3, 1 / mean(side.latencies), side.load_seconds * 1e3,
                       side.speedup_over(sides.front()));
  for (const Side& side : sides) {
    if (side.nodes.empty()) continue;
    out += fmt::format("\n{}: time by op, then the slowest nodes\n", side.name);
    std::vector<std::pair<double, std::string>> ops;
    for (const auto& [op, seconds] : by_op(side.nodes)) ops.emplace_back(seconds, op);
    std::sort(ops.rbegin(), ops.rend());
    for (const auto& [seconds, op] : ops) out += fmt::format("  {:>10.3f} ms  {}\n", seconds * 1e3, op);
    for (std::size_t i = 0; i < std::min(top_nodes, side.nodes.size()); ++i)
      out +=
          fmt::format("  {:>10.3f} ms  {:<20} {}\n", side.nodes[i].seconds * 1e3, side.nodes[i].op, side.nodes[i].name);
  }
  return out;
}

std::string json_report(const std::vector<Side>& sides, int threads, const std::string& runtime) {
  nlohmann::ordered_json root{{"threads", threads}, {"onnxruntime", runtime}, {"sides", nlohmann::json::array()}};
  for (const Side& side : sides) {
    nlohmann::ordered_json item{{"name", side.name},
                                {"model", side.model},
                                {"plugin", side.plugin},
                                {"load_ms", side.load_seconds * 1e3},
                                {"runs", side.latencies.size()},
                                {"p50_ms", side.percentile(50) * 1e3},
                                {"p90_ms", side.percentile(90) * 1e3},
                                {"p99_ms", side.percentile(99) * 1e3},
                                {"mean_ms", mean(side.latencies) * 1e3},
                                {"runs_per_second", 1 / mean(side.latencies)},
                                {"speedup", side.speedup_over(sides.front())}};
    for (const NodeTime& node : side.nodes)
      item["nodes"].push_back({{"name", node.name}, {"op", node.op}, {"ms", node.seconds * 1e3}});
    root["sides"].push_back(item);
  }
  return root.dump(2);
}

}  // namespace modelflow::tools
