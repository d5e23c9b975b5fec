// Runs timed in turns, and what their ratios are sure to be.
#include "src/measure/timing.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "src/core/median.h"
#include "src/core/stopwatch.h"
#include "src/verify/session.h"

namespace modelflow {
namespace {

/// The fastest of enough runs to fill a short block: others who use the machine only ever add time, and so do threads
/// that wake up and weights that another side pushed out of the cache.
double block(const Runner& run, std::size_t runs) {
  double fastest = run();
  for (std::size_t i = 1; i < runs; ++i) fastest = std::min(fastest, run());
  return fastest;
}

Timing summarize(const std::vector<double>& base, const std::vector<double>& side) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < side.size(); ++i) ratios.push_back(base[i] / side[i]);
  const Interval sure = interval_of_median(ratios);
  const double best = *std::min_element(base.begin(), base.end()) / *std::min_element(side.begin(), side.end());
  return {median(side), median(ratios), sure.low, sure.high, best, {}, side};
}

std::vector<Timing> summaries(const std::vector<std::vector<double>>& rounds) {
  std::vector<Timing> timings;
  for (const std::vector<double>& side : rounds) timings.push_back(summarize(rounds[0], side));
  return timings;
}

}  // namespace

Interval interval_of_median(const std::vector<double>& values) {
  if (values.empty()) return {};
  std::mt19937 random(0);
  std::vector<double> medians;
  for (int i = 0; i < 500; ++i) {
    std::vector<double> sample;
    for (std::size_t k = 0; k < values.size(); ++k) sample.push_back(values[random() % values.size()]);
    medians.push_back(median(std::move(sample)));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[12], medians[487]};
}

Timing against(const Timing& base, const Timing& side) { return summarize(base.rounds, side.rounds); }

std::vector<Timing> joined(const std::vector<Timing>& first, const std::vector<Timing>& second) {
  std::vector<std::vector<double>> rounds;
  for (const Timing& side : first) rounds.push_back(side.rounds);
  for (std::size_t i = 0; i < second.size(); ++i)
    rounds.at(i).insert(rounds[i].end(), second[i].rounds.begin(), second[i].rounds.end());
  return summaries(rounds);
}

bool is_sure(const Timing& timing) {
  const double width = (timing.high - timing.low) / timing.speedup;
  const bool clear = timing.low > 1.08 || timing.high < 0.99;
  return width < (clear ? std::max(0.1, (timing.low - 1) / 2) : 0.02);  // how much faster, more roughly
}

std::vector<Timing> time_interleaved(const std::vector<Runner>& sides, const Effort& effort) {
  constexpr std::size_t kMinRounds = 3, kMaxRounds = 60;
  constexpr std::size_t kRoundsToBeSure = 6;  // fewer agree by chance too often
  constexpr double kLong = 0.02;              // seconds of one run, beside which waking up is little
  const Stopwatch watch;
  std::vector<std::size_t> runs;
  std::vector<double> first;
  for (const Runner& run : sides) {
    run();
    double once = run();
    if (once < kLong) once = std::min(once, run());
    const double fewest = once > 5 * kLong ? 1 : once > kLong ? 2 : 4;
    runs.push_back(
        static_cast<std::size_t>(std::clamp(std::ceil(effort.block / std::max(once, 1e-7)), fewest, 2000.0)));
    first.push_back(once);
  }
  std::vector<std::vector<double>> blocks(sides.size());
  if (std::ranges::all_of(runs, [](std::size_t n) { return n == 1; }))  // these runs are the first round
    for (std::size_t k = 0; k < sides.size(); ++k) blocks[k].push_back(first[k]);
  for (std::size_t round = blocks[0].size();
       round < kMaxRounds && (round < kMinRounds || watch.seconds() < effort.budget); ++round) {
    if (effort.enough && round >= kRoundsToBeSure && effort.enough(summarize(blocks[0], blocks[1]))) break;
    for (std::size_t k = 0; k < sides.size(); ++k) {
      const std::size_t side = round % 2 ? sides.size() - 1 - k : k;
      blocks[side].push_back(block(sides[side], runs[side]));
    }
  }
  return summaries(blocks);
}

SessionOptions timing_session(const Options& options) {
  // Threads spin while a session runs, as they do for users, but not while it is the other one's turn.
  return {
      .threads = options.threads, .device = options.target.device, .config = {{"session.force_spinning_stop", "1"}}};
}

std::vector<Timing> time_models(const Sessions& sessions, const std::vector<const Model*>& models, const Feeds& feeds,
                                const Options& options, const std::filesystem::path& plugin, const Effort& effort) {
  std::vector<std::unique_ptr<Session>> opened;
  std::vector<Runner> runners;
  for (const Model* model : models) {
    SessionOptions session = timing_session(options);
    if (uses_our_domain(*model)) session.plugin = plugin;
    opened.push_back(open_session(sessions, *model, session));
    runners.push_back([&feeds, s = opened.back().get()] { return s->timed_run(feeds); });
  }
  return time_interleaved(runners, effort);
}

}  // namespace modelflow
