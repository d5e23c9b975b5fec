// The search for the ops that have to stay in float32.
#include "src/precision/choose.h"

#include <algorithm>

#include "passes/quantize/quantize.h"
#include "src/measure/extract.h"
#include "src/precision/gains.h"

namespace modelflow {
namespace {

constexpr double kGlance = 1.0;  // seconds for timing a point that may not be the one
/// More time than clocks disagree about.
constexpr double kClearly = 1.01;
/// Samples that rank ops against each other; whether the bound is kept, all of them say.
constexpr std::size_t kRankedBy = 4;
/// Ops that are tried in low precision once more after the bound held without them.
constexpr std::size_t kSecondTries = 12;

constexpr const char* kInexact = "it costs too much accuracy";
constexpr const char* kNoGain = "it takes no less time in lower precision here";
constexpr const char* kWholeNoFaster = "the whole is no faster in 8 bits here";

}  // namespace

Trial Chooser::choose(Trial lowest) {
  std::optional<Trial> half = in_half();
  if (settled_) lowest = trials_.scored(trials_.make(allowed_));
  report_.list(lowest);
  note(lowest);
  // A copy: `half` may be the answer in the end.
  const Model full = half ? half->fused : trials_.base;
  Trial best = chosen(std::move(lowest), full);
  if (half) best = faster(std::move(best), *std::move(half));
  for (const std::string& name : names(best)) why_.erase(name);  // the round before may have had its reasons
  return best;
}

/// What ops that do not go as low as is asked for run in, where that is not float32: bfloat16 on CPUs that multiply it,
/// float16 around what has fewer bits on a GPU.
std::optional<Precision> Chooser::half_precision() const {
  if (passes::mixes_bf16(options_)) return Precision::bf16;
  const bool fewer = options_.precision != Precision::f16 && half_type(options_) == DType::f16;
  return fewer ? std::optional(Precision::f16) : std::nullopt;
}

/// The form with nothing below 16 bits; what it settles is what fewer bits have to beat.
std::optional<Trial> Chooser::in_half() {
  const std::optional<Precision> first = half_precision();
  if (!first) return {};
  Model base = trials_.base;
  for (const auto& node : base.graph().nodes()) allowed_[node->name] = {*first};
  for (const Node* node : fused_nodes(base.graph())) allowed_[node->name] = {*first};
  lowers_to_ = *first;
  Trial half = trials_.scored(trials_.make(allowed_));
  Names kept = names(half);
  if (!half.lowered.empty()) {
    report_.list(half);
    note(half);
    half = chosen(std::move(half), trials_.base);
  }
  for (const std::string& name : names(half)) kept.erase(name);
  settled_ = first;
  lowers_to_ = passes::in_weights_alone(options_) ? options_.precision : Precision::i8;
  for (auto& [node, precisions] : allowed_) {
    precisions = {lowers_to_};
    if (!kept.contains(node)) precisions.insert(*first);  // what only moves values goes along with them
  }
  kept_.clear();
  return half.lowered.empty() ? std::nullopt : std::optional(std::move(half));
}

/// Of one round: from everything lowered to what gains and keeps the bound.
Trial Chooser::chosen(Trial all, const Model& full) {
  all = gaining(std::move(all), full);
  return all.drop <= options_.max_drop ? std::move(all) : within_bound(all);
}

Allowed Chooser::without(const Names& kept) const {
  Allowed allowed = allowed_;
  for (const Names* names : {&kept_, &kept})
    for (const std::string& name : *names) allowed[name].erase(lowers_to_);
  return allowed;
}

/// What this round is about.
Chooser::Names Chooser::names(const Trial& trial) const {
  Names found;
  for (const auto& [name, precision] : trial.lowered)
    if (precision != settled_) found.insert(name);
  return found;
}

/// Less the ops that take no less time than in `full`, where the clock agrees for the whole.
Trial Chooser::gaining(Trial all, const Model& full) {
  if (!trials_.measurable() || options_.level != Level::O2) return all;
  if (options_.progress) options_.progress("time every op", 0);
  const Model runnable = trials_.runnable(full);
  const std::vector<NodeTimes> times = node_times(work_.sessions, {&runnable, &all.runnable},
                                                  trials_.samples.evaluation().front(), options_, work_.plugin);
  Names slow;
  std::ranges::set_intersection(without_gain({full, times[0]}, {all.fused, times[1]}), names(all),
                                std::inserter(slow, slow.end()));
  if (slow.empty()) return all;
  Trial fewer = trials_.scored(trials_.make(without(slow)));
  if (fewer.lowered.empty() || fewer.drop > std::max(all.drop, options_.max_drop)) return all;
  note(fewer);
  const double speedup = trials_.time({&all.runnable, &fewer.runnable}, kGlance).at(1).speedup;
  if (speedup < (fewer.drop <= all.drop ? 1 : kClearly)) return all;
  kept_ = std::move(slow);
  for (const std::string& name : kept_) why_[name] = kNoGain;
  return fewer;
}

/// The ops of this round, the one that costs the most accuracy first. What each saves by its own measured time was
/// tried in the denominator, and left fewer ops and less speed: an op that goes takes its neighbours' 8-bit borders
/// with it.
std::vector<std::string> Chooser::by_sensitivity(const Names& all) {
  std::vector<std::pair<double, std::string>> ranked;
  for (const std::string& name : all) {
    Names others = all;
    others.erase(name);
    if (options_.progress)
      options_.progress("rank by accuracy", static_cast<double>(ranked.size()) / static_cast<double>(all.size()));
    ranked.emplace_back(trials_.make(without(others), kRankedBy).drop, name);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  std::vector<std::string> names;
  names.reserve(ranked.size());
  for (const auto& [drop, name] : ranked) names.push_back(name);
  return names;
}

/// As few ops put back as a search finds that the bound takes.
Trial Chooser::within_bound(const Trial& all) {
  Trial best;
  const auto holds = [&](const Names& keep) {
    Trial made = trials_.scored(trials_.make(without(keep)));
    note(made);
    const bool within = !made.lowered.empty() && made.drop <= options_.max_drop;
    if (within && names(made).size() >= names(best).size()) best = std::move(made);
    return within;
  };
  for (const std::string& name : fewest_kept(by_sensitivity(names(all)), holds, kSecondTries)) why_[name] = kInexact;
  return best;
}

Trial Chooser::faster(Trial best, Trial other) {
  if (names(best).empty()) return other;
  if (!trials_.measurable() || options_.level != Level::O2) return best;
  if (trials_.time({&other.runnable, &best.runnable}, kGlance).at(1).speedup >= 1) return best;
  for (const std::string& name : names(best)) why_[name] = kWholeNoFaster;
  return other;
}

/// A point of the frontier between speed and accuracy.
void Chooser::note(const Trial& made) {
  double speedup = 0;
  if (trials_.measurable() && options_.level == Level::O2 && !made.lowered.empty())
    speedup = trials_.time({&work_.precise.fastest, &made.runnable}, kGlance).at(1).speedup;
  report_.note(made, speedup);
}

std::set<std::string> fewest_kept(const std::vector<std::string>& ranked,
                                  const std::function<bool(const std::set<std::string>& keep)>& holds,
                                  std::size_t most_tries) {
  using Names = std::set<std::string>;
  const auto first = [&](std::size_t count) {
    return Names(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count));
  };
  std::size_t low = 0, high = ranked.size();  // `low` breaks the bound, `high` keeps it
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (holds(first(middle)) ? high : low) = middle;
  }
  Names keep = first(high);
  // The last one was part of the bisection: without it the bound broke.
  for (std::size_t tried = 0; tried < most_tries && tried + 1 < high; ++tried) {
    Names fewer = keep;
    fewer.erase(ranked[high - 2 - tried]);
    if (holds(fewer)) keep = std::move(fewer);
  }
  return keep;
}

}  // namespace modelflow
