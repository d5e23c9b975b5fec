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

Rounds ratios(const Rounds& base, const Rounds& side) {
  Rounds result;
  for (std::size_t i = 0; i < side.size(); ++i) result.push_back(base.at(i) / side[i]);
  return result;
}

Rounds all_of(const std::vector<Rounds>& sessions) {
  Rounds all;
  for (const Rounds& rounds : sessions) all.insert(all.end(), rounds.begin(), rounds.end());
  return all;
}

/// One session of a side.
Timing of_session(Rounds rounds) {
  Timing timing;
  timing.sessions.push_back(std::move(rounds));
  return timing;
}

/// Each with its speedup over the first.
std::vector<Timing> against_first(std::vector<Timing> sides) {
  for (Timing& side : sides) side = against(sides[0], side);
  return sides;
}

}  // namespace

Interval interval_of_median(const std::vector<Rounds>& sessions) {
  if (all_of(sessions).empty()) return {};
  std::mt19937 random(0);
  std::vector<double> medians;
  for (int i = 0; i < 500; ++i) {
    Rounds sample;
    for (std::size_t k = 0; k < sessions.size(); ++k) {
      const Rounds& rounds = sessions[random() % sessions.size()];
      for (std::size_t n = 0; n < rounds.size(); ++n)
        sample.push_back(rounds[sessions.size() > 1 ? n : random() % rounds.size()]);
    }
    medians.push_back(median(std::move(sample)));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[12], medians[487]};
}

Timing against(const Timing& base, const Timing& side) {
  std::vector<Rounds> of_sessions;
  for (std::size_t i = 0; i < side.sessions.size(); ++i)
    of_sessions.push_back(ratios(base.sessions.at(i), side.sessions[i]));
  const Interval sure = interval_of_median(of_sessions);
  return {median(all_of(side.sessions)), median(all_of(of_sessions)), sure.low, sure.high, {}, side.sessions};
}

std::vector<Timing> joined(const std::vector<Timing>& first, const std::vector<Timing>& second) {
  std::vector<Timing> both = first;
  for (std::size_t i = 0; i < second.size(); ++i)
    both.at(i).sessions.insert(both[i].sessions.end(), second[i].sessions.begin(), second[i].sessions.end());
  return against_first(std::move(both));
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
    for (int warm = 0; warm < kRunsThatTakeMemory; ++warm) run();
    double once = run();
    if (once < kLong) once = std::min(once, run());
    const double fewest = once > kLong ? 1 : 4;
    runs.push_back(
        static_cast<std::size_t>(std::clamp(std::ceil(effort.block / std::max(once, 1e-7)), fewest, 2000.0)));
    first.push_back(once);
  }
  std::vector<Rounds> blocks(sides.size());
  if (std::ranges::all_of(runs, [](std::size_t n) { return n == 1; }))  // these runs are the first round
    for (std::size_t k = 0; k < sides.size(); ++k) blocks[k].push_back(first[k]);
  for (std::size_t round = blocks[0].size();
       round < kMaxRounds && (round < kMinRounds || watch.seconds() < effort.budget); ++round) {
    if (effort.enough && round >= kRoundsToBeSure &&
        effort.enough(against(of_session(blocks[0]), of_session(blocks[1]))))
      break;
    for (std::size_t k = 0; k < sides.size(); ++k) {
      const std::size_t side = round % 2 ? sides.size() - 1 - k : k;
      blocks[side].push_back(block(sides[side], runs[side]));
    }
  }
  std::vector<Timing> timings;
  for (Rounds& rounds : blocks) timings.push_back(of_session(std::move(rounds)));
  return against_first(std::move(timings));
}

SessionOptions timing_session(const Options& options) {
  // Threads spin while a session runs, as they do for users, but not while it is the other one's turn.
  return {
      .threads = options.threads, .device = options.target.device, .config = {{"session.force_spinning_stop", "1"}}};
}

namespace {

struct Opened {
  std::vector<std::unique_ptr<Session>> sessions;
  double seconds = 0;  ///< that opening them took
};

Opened open_all(const Sessions& sessions, const std::vector<const Model*>& models, const Options& options,
                const std::filesystem::path& plugin) {
  const Stopwatch watch;
  Opened opened;
  for (const Model* model : models) {
    SessionOptions session = timing_session(options);
    if (uses_our_domain(*model)) session.plugin = plugin;
    opened.sessions.push_back(open_session(sessions, *model, session));
  }
  opened.seconds = watch.seconds();
  return opened;
}

}  // namespace

std::vector<Timing> time_models(const Sessions& sessions, const std::vector<const Model*>& models, const Feeds& feeds,
                                const Options& options, const std::filesystem::path& plugin, const Effort& effort) {
  constexpr double kSession = 0.25;  // seconds for the rounds of one, more where opening it takes longer
  const Stopwatch watch;
  std::vector<Timing> timings;
  do {
    const Opened opened = open_all(sessions, models, options, plugin);
    std::vector<Runner> runners;
    for (const auto& session : opened.sessions)
      runners.push_back([&feeds, s = session.get()] { return s->timed_run(feeds); });
    const double left = std::max(effort.budget - watch.seconds(), 0.0);
    const double share = std::min(std::max(kSession, opened.seconds), left);
    const std::vector<Timing> now = time_interleaved(runners, {.budget = share, .block = effort.block});
    timings = timings.empty() ? now : joined(timings, now);
  } while (watch.seconds() < effort.budget &&
           !(timings[0].sessions.size() >= kSessionsToBeSure && effort.enough && effort.enough(timings.at(1))));
  return timings;
}

}  // namespace modelflow
