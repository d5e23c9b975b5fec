// The report of modelflow-bench as text and as JSON.
#include "bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/core/median.h"
#include "src/core/printable.h"

namespace modelflow::tools {
namespace {

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The nodes of an op, or one alone: what they took and did.
struct Share {
  double seconds = 0, operations = 0;
  double at_peak = 0;   ///< seconds that the operations take at least
  double products = 0;  ///< seconds of the nodes that have some
  void add(double took, const Work& work, const Peak& peak) {
    seconds += took;
    if (work.operations == 0) return;
    operations += work.operations;
    at_peak += work.share_of(peak, 1);
    products += took;
  }
};

std::map<std::string, Share> by_op(const Side& side, const Peak& peak) {
  std::map<std::string, Share> total;
  for (std::size_t i = 0; i < side.nodes.size(); ++i)
    total[side.nodes[i].op].add(side.nodes[i].seconds, side.work[i], peak);
  return total;
}

std::string row(const Share& share, const std::string& name) {
  if (share.products == 0) return fmt::format("  {:>10.3f} ms  {:>20}  {}\n", share.seconds * 1e3, "", printable(name));
  return fmt::format("  {:>10.3f} ms  {:>8.1f} GOP/s {:>4.0f} %  {}\n", share.seconds * 1e3,
                     share.operations / share.products / 1e9, 100 * share.at_peak / share.products, printable(name));
}

std::string profile_text(const Side& side, const Peak& peak, std::size_t top_nodes) {
  std::string out = fmt::format(
      "\n{}: time by op, then the slowest nodes; products in operations per second and per cent of the peak\n",
      printable(side.name));
  std::vector<std::pair<std::string, Share>> ops;
  for (const auto& entry : by_op(side, peak)) ops.push_back(entry);
  std::ranges::stable_sort(ops, std::greater(), [](const auto& entry) { return entry.second.seconds; });
  for (const auto& [op, share] : ops) out += row(share, op);
  for (std::size_t i = 0; i < std::min(top_nodes, side.nodes.size()); ++i) {
    Share share;
    share.add(side.nodes[i].seconds, side.work[i], peak);
    out += row(share, fmt::format("{:<20} {}", side.nodes[i].op, side.nodes[i].name));
  }
  return out;
}

nlohmann::ordered_json profile_json(const Side& side, const Peak& peak) {
  nlohmann::ordered_json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < side.nodes.size(); ++i) {
    const NodeTime& node = side.nodes[i];
    nlohmann::ordered_json item{{"name", node.name}, {"op", node.op}, {"ms", node.seconds * 1e3}};
    if (const Work& work = side.work[i]; work.operations > 0) {
      item["operations"] = work.operations;
      item["share_of_peak"] = work.share_of(peak, node.seconds);
    }
    rows.push_back(item);
  }
  return rows;
}

}  // namespace

double Side::percentile(double percent) const {
  if (latencies.empty()) return 0;
  std::vector<double> sorted = latencies;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

double Side::runs_per_second() const { return 1 / mean(latencies); }

double Side::speedup_over(const Side& first) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(medians.size(), first.medians.size()); ++i)
    ratios.push_back(first.medians[i] / medians[i]);
  return median(ratios);
}

std::string text_report(const BenchReport& report, std::size_t top_nodes) {
  std::string out = fmt::format("{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>9}\n", "side", "p50 ms", "p90 ms",
                                "p99 ms", "mean ms", "runs/s", "load ms", "speedup");
  for (const Side& side : report.sides)
    out += fmt::format("{:<28.28}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.3f}{:>10.1f}{:>10.1f}{:>8.2f}x\n",
                       printable(side.name), side.percentile(50) * 1e3, side.percentile(90) * 1e3,
                       side.percentile(99) * 1e3, mean(side.latencies) * 1e3, side.runs_per_second(),
                       side.load_seconds * 1e3, side.speedup_over(report.sides.front()));
  if (report.peak.float32 > 0)
    out += fmt::format(
        "\npeak of this machine on {} thread(s), measured: {:.0f} GOP/s in float32, {:.0f} in bf16, {:.0f} in int8\n",
        report.threads, report.peak.float32 / 1e9, report.peak.bf16 / 1e9, report.peak.int8 / 1e9);
  for (const Side& side : report.sides)
    if (!side.nodes.empty()) out += profile_text(side, report.peak, top_nodes);
  return out;
}

std::string json_report(const BenchReport& report) {
  nlohmann::ordered_json root{
      {"threads", report.threads}, {"onnxruntime", report.runtime}, {"sides", nlohmann::json::array()}};
  if (report.peak.float32 > 0)
    root["peak"] = {{"float32", report.peak.float32}, {"bf16", report.peak.bf16}, {"int8", report.peak.int8}};
  for (const Side& side : report.sides) {
    nlohmann::ordered_json item{{"name", side.name},
                                {"model", side.model},
                                {"plugin", side.plugin},
                                {"load_ms", side.load_seconds * 1e3},
                                {"runs", side.latencies.size()},
                                {"p50_ms", side.percentile(50) * 1e3},
                                {"p90_ms", side.percentile(90) * 1e3},
                                {"p99_ms", side.percentile(99) * 1e3},
                                {"mean_ms", mean(side.latencies) * 1e3},
                                {"runs_per_second", side.runs_per_second()},
                                {"speedup", side.speedup_over(report.sides.front())}};
    if (!side.nodes.empty()) item["nodes"] = profile_json(side, report.peak);
    root["sides"].push_back(item);
  }
  return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace modelflow::tools
