// Times of several sides that take turns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "src/verify/session.h"

namespace modelflow {

/// Seconds of the fastest run of each round of one session, which took turns with those of the other sides.
using Rounds = std::vector<double>;

/// The time of one side, and how many times faster than side 0 it is: the median of the per-round ratios with its
/// bootstrapped 95 % interval. On a noisy machine only ratios of neighbouring measurements mean anything, and where in
/// memory a session has its tensors may make more of a difference than all noise within: what is sure of one session
/// is not yet sure of the next one.
struct Timing {
  double seconds = 0;
  double speedup = 1, low = 1, high = 1;
  std::string why_not;                ///< not empty: could not be timed
  std::vector<Rounds> sessions = {};  ///< one behind the other
};

/// Where a number is in 95 of 100 cases.
struct Interval {
  double low = 0, high = 0;
};
/// Of the median over all rounds, bootstrapped: sessions are drawn, with all of their rounds, which hold the noise
/// within (a cluster bootstrap); of a single one, rounds. The same for the same values.
Interval interval_of_median(const std::vector<Rounds>& sessions);
/// `side` with its speedup over `base`, which took turns with it.
Timing against(const Timing& base, const Timing& side);

/// What the sessions of two timings of the same sides say together; the second may lack the last sides.
std::vector<Timing> joined(const std::vector<Timing>& first, const std::vector<Timing>& second);

/// A form that is merely equal is not worth a plugin or an error, and what looks a little faster now may be a little
/// slower tomorrow; below kNotSlower, the low end of an interval says that it may be measurably slower.
constexpr double kWorthwhile = 1.03, kNotSlower = 0.98;

/// Fewer may agree by chance.
constexpr std::size_t kSessionsToBeSure = 3;

/// What a session learns from its first run, ONNX Runtime takes in the second one as a single block of memory: all
/// pages of it are new (SwinUNETR: 99 000 of them, a third of the run).
constexpr int kRunsThatTakeMemory = 2;

/// One run of one side; gives its seconds.
using Runner = std::function<double()>;

/// How long to measure: until `enough` says so of side 1 (absent: never), within `budget` seconds, in blocks of `block`
/// seconds, which are long against a scheduler tick and short against the drift of the machine.
struct Effort {
  double budget = 0;
  std::function<bool(const Timing&)> enough = {};
  double block = 0.02;
};

/// More rounds would not change what is decided: clearly faster, clearly not, or known to 2 %.
bool is_sure(const Timing& timing);

/// Times the sides in short interleaved blocks (order A B, B A, ...), but at least three rounds.
std::vector<Timing> time_interleaved(const std::vector<Runner>& sides, const Effort& effort);

/// How sessions are opened that take turns in one process.
SessionOptions timing_session(const Options& options);

/// Times runnable models on the same feeds, all loaded in this process; the first is the baseline. Idle sessions park
/// their threads. Sessions are opened anew as often as the budget allows, at least once, until `enough` says so of side
/// 1 after three. `plugin` (may be empty) is registered for models that use our domain only.
std::vector<Timing> time_models(const Sessions& sessions, const std::vector<const Model*>& models, const Feeds& feeds,
                                const Options& options, const std::filesystem::path& plugin, const Effort& effort);

/// time_models with everything but the models and the budget fixed; tests put fixed numbers in its place.
using TimeModels = std::function<std::vector<Timing>(const std::vector<const Model*>& models, double budget)>;

}  // namespace modelflow
