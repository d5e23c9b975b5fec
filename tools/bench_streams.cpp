// Throughput: many sessions at once, and the best way to share out the cores.
#include "bench_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "src/core/printable.h"
#include "terminal.h"

namespace modelflow::tools {
namespace {

/// Runs per second with one session of the same model and all threads; 0 where that was not measured.
double of_one(const StreamSide& side) {
  const auto one = std::ranges::find(side.loads, 1, [](const Load& load) { return load.split.streams; });
  return one == side.loads.end() ? 0 : one->runs_per_second;
}

std::string advice(const StreamSide& side) {
  const Load& best = best_of(side.loads);
  const double alone = of_one(side);
  const std::string gain = alone > 0 && best.split.streams > 1
                               ? fmt::format(", {:.2f}x of what one session gives", best.runs_per_second / alone)
                               : "";
  return fmt::format("most of '{}': {} session(s) of {} thread(s), {:.1f} runs/s{}\n", printable(side.name),
                     best.split.streams, best.split.threads, best.runs_per_second, gain);
}

}  // namespace

std::vector<Split> splits_for(const std::string& streams, int threads, int cores) {
  if (streams == "best") return splits_of(threads > 0 ? threads : cores);
  int count = 0;
  constexpr int kMost = 1024;
  const char* end = streams.data() + streams.size();
  const auto [rest, wrong] = std::from_chars(streams.data(), end, count);
  if (wrong != std::errc() || rest != end || count < 1 || count > kMost)
    throw Error(ErrorKind::usage,
                fmt::format("--streams takes a number from 1 to {} or 'best', not '{}'", kMost, streams));
  return {{count, threads > 0 ? threads : std::max(1, cores / count)}};
}

std::vector<StreamSide> bench_streams(Runtime& runtime, const std::vector<Side>& sides, const std::string& plugin,
                                      const std::vector<Split>& splits, const Feeds& feeds, double seconds) {
  std::vector<StreamSide> measured;
  measured.reserve(sides.size());
  for (const Side& side : sides) measured.push_back({side.name, side.model, side.plugin});
  constexpr int kRounds = 2;  // there and back, so that drift of the machine hits every side alike
  for (const Split& split : splits) {
    std::vector<Load> best(sides.size());
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t i = 0; i < sides.size(); ++i) {
        const std::size_t at = round == 0 ? i : sides.size() - 1 - i;
        const Served served{sides[at].model, sides[at].plugin ? plugin : ""};
        const Load load = measure_load(runtime, served, split, feeds, seconds / kRounds);
        if (load.runs_per_second > best[at].runs_per_second) best[at] = load;
      }
    for (std::size_t i = 0; i < sides.size(); ++i) measured[i].loads.push_back(best[i]);
  }
  return measured;
}

std::string text_report(const std::vector<StreamSide>& sides) {
  std::string out = fmt::format("{:<28}{:>9}{:>9}{:>11}{:>10}{:>10}{:>12}{:>9}\n", "side", "sessions", "threads",
                                "runs/s", "p50 ms", "p99 ms", "memory", "against");
  for (std::size_t i = 0; i < sides.front().loads.size(); ++i)
    for (const StreamSide& side : sides) {
      const Load& load = side.loads[i];
      out += fmt::format("{:<28.28}{:>9}{:>9}{:>11.1f}{:>10.3f}{:>10.3f}{:>12}{:>8.2f}x\n", printable(side.name),
                         load.split.streams, load.split.threads, load.runs_per_second, load.p50_ms, load.p99_ms,
                         load.memory_bytes > 0 ? human_bytes(load.memory_bytes) : "-",
                         load.runs_per_second / sides.front().loads[i].runs_per_second);
    }
  if (sides.front().loads.size() == 1) return out;
  out += "\n";
  for (const StreamSide& side : sides) out += advice(side);
  return out;
}

std::string json_report(const std::vector<StreamSide>& sides, const std::string& runtime) {
  nlohmann::ordered_json root{{"onnxruntime", runtime}, {"sides", nlohmann::json::array()}};
  for (const StreamSide& side : sides) {
    nlohmann::ordered_json loads = nlohmann::json::array();
    for (const Load& load : side.loads)
      loads.push_back({{"streams", load.split.streams},
                       {"threads", load.split.threads},
                       {"runs", load.runs},
                       {"runs_per_second", load.runs_per_second},
                       {"p50_ms", load.p50_ms},
                       {"p99_ms", load.p99_ms},
                       {"memory_bytes", load.memory_bytes}});
    const Split best = best_of(side.loads).split;
    root["sides"].push_back({{"name", side.name},
                             {"model", side.model},
                             {"plugin", side.plugin},
                             {"best", {{"streams", best.streams}, {"threads", best.threads}}},
                             {"loads", loads}});
  }
  return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace modelflow::tools
