#include "src/verify/compare.h"

#include <algorithm>
#include <map>

#include "src/verify/parts.h"
#include "src/verify/probe.h"

namespace modelflow {
namespace {

constexpr double kTolerance = 1e-4;  // where none is given: float32 sums in another order
constexpr double kAsMuch = 8;        // one rounding may be so much larger than another

void merge(OutputDiff& worst, const OutputDiff& diff) {
  if (diff.max_rel > worst.max_rel) worst.feed = diff.feed;
  worst.max_abs = std::max(worst.max_abs, diff.max_abs);
  worst.max_rel = std::max(worst.max_rel, diff.max_rel);
  worst.equal_type = worst.equal_type && diff.equal_type;
  worst.ok = worst.ok && diff.ok;
  if (!diff.explained.empty()) worst.explained = diff.explained;
}

bool is_no_larger(const OutputDiff& diff, const OutputDiff& than) {
  return (diff.equal_type || !than.equal_type) && diff.max_rel <= kAsMuch * than.max_rel;
}

class Judge {
 public:
  Judge(Runtime& runtime, const Reference& reference, const Model& original, const Model& optimized,
        const Options& options, const std::filesystem::path& plugin)
      : runtime_(runtime),
        reference_(reference),
        original_(original),
        optimized_(optimized),
        options_(options),
        session_{.threads = options.threads, .plugin = plugin} {}

  Comparison judge(const std::size_t* only) {
    for (const std::string& name : reference_.names) found_.diffs.push_back({.output = name});
    try {
      const auto session = open_session(runtime_, optimized_, session_);
      for (std::size_t i = 0; i < reference_.feeds.size() && found_.ok; ++i)
        if (!only || *only == i) look_at(i, *session);
    } catch (const Error& error) {
      refuse(0, error.what());
    }
    return std::move(found_);
  }

 private:
  void refuse(std::size_t feed, const std::string& why) {
    found_.ok = false;
    found_.feed = feed;
    found_.why = why;
    found_.fault = {.output = "", .equal_type = false, .ok = false};
  }

  void look_at(std::size_t i, Session& session) {
    const Feed& feed = reference_.feeds[i];
    std::vector<Tensor> results;
    try {
      if (has_empty_input(feed.values) && !survives(runtime_, optimized_, feed.values, session_))
        throw Error(ErrorKind::unsupported, "it ends the process");
      results = session.run(feed.values);
    } catch (const Error& error) {
      return refuse(i, error.what());
    }
    if (results.size() != reference_.names.size()) return refuse(i, "the number of outputs has changed");
    for (std::size_t k = 0; k < results.size() && found_.ok; ++k) {
      if (reference_.random[k]) continue;
      OutputDiff diff = distance(i, k, results[k]);
      if (!diff.ok) look_again(i, k, results[k], diff);
      diff.feed = feed.name;
      merge(found_.diffs[k], diff);
      if (diff.ok) continue;
      found_.ok = false;
      found_.feed = i;
      found_.fault = diff;
    }
  }

  OutputDiff distance(std::size_t i, std::size_t k, const Tensor& result, const Tensor* other = nullptr) const {
    const Tensor& expected = reference_.outputs[i][k];
    if (reference_.feeds[i].kinds_only) return difference_in_kind(reference_.names[k], expected, result, other);
    return difference(reference_.names[k], expected, result, options_.tolerance.value_or(kTolerance),
                      options_.tolerance ? 0 : reference_.floors[k]);
  }

  void look_again(std::size_t i, std::size_t k, const Tensor& result, OutputDiff& diff) {
    const std::string open = "the model leaves it open", changed = "ONNX Runtime's own optimizations change it as well";
    const Tensor* stock = of_stock(i, k);
    if (reference_.feeds[i].kinds_only) {
      if (stock && distance(i, k, result, stock).ok) diff.ok = true, diff.explained = open;
      return;
    }
    if (options_.tolerance || !plain(i)) return;
    const OutputDiff without = distance(i, k, (*plain(i))[k]);
    const OutputDiff of_original = stock ? distance(i, k, *stock) : OutputDiff();
    if (without.ok && !of_original.ok && is_no_larger(diff, of_original)) {
      diff.ok = true;
      diff.explained = changed;
      note(i, of_original);
    } else if (!without.ok && every_part_agrees(i, k)) {
      diff.ok = is_no_larger(diff, without) || is_no_larger(diff, of_original);
      if (diff.ok) diff.explained = "rounding: every part of the model agrees";
    }
  }

  void note(std::size_t i, const OutputDiff& of_original) {
    found_.notes.push_back("ONNX Runtime's own optimizations change output '" + of_original.output +
                           "' of the original (" + describe(of_original) + ", feed '" + reference_.feeds[i].name +
                           "'): the result is judged without them");
  }

  /// The original in stock ONNX Runtime; null where that does not run.
  const Tensor* of_stock(std::size_t i, std::size_t k) {
    const std::vector<Tensor>* results = run(stock_, i, original_, {.threads = options_.threads});
    return results ? &(*results)[k] : nullptr;
  }

  /// The optimized model without ONNX Runtime's own optimisations.
  const std::vector<Tensor>* plain(std::size_t i) {
    SessionOptions session = session_;
    session.optimize = false;
    return run(plain_, i, optimized_, session);
  }

  using Results = std::map<std::size_t, std::vector<Tensor>>;

  const std::vector<Tensor>* run(Results& known, std::size_t i, const Model& model, const SessionOptions& session) {
    if (!known.contains(i)) {
      try {
        const Feeds& feeds = reference_.feeds[i].values;
        if (!has_empty_input(feeds) || survives(runtime_, model, feeds, session))
          known[i] = open_session(runtime_, model, session)->run(feeds);
      } catch (const Error&) {
        known[i].clear();
      }
    }
    return known[i].size() == reference_.names.size() ? &known[i] : nullptr;
  }

  bool every_part_agrees(std::size_t i, std::size_t k) {
    if (!parts_.contains(i)) {
      parts_[i] = agreement(i, original_);
      if (!parts_[i][k] && reference_.exact) parts_[i] = agreement(i, *reference_.exact);
    }
    return parts_[i][k];
  }

  std::vector<bool> agreement(std::size_t i, const Model& original) {
    try {
      return compare_parts(runtime_, original, optimized_, reference_.feeds[i].values, reference_, session_).agree;
    } catch (const Error&) {
      return std::vector<bool>(reference_.names.size(), false);
    }
  }

  Runtime& runtime_;
  const Reference& reference_;
  const Model &original_, &optimized_;
  const Options& options_;
  SessionOptions session_;
  Comparison found_;
  Results stock_, plain_;
  std::map<std::size_t, std::vector<bool>> parts_;
};

}  // namespace

Comparison compare(Runtime& runtime, const Reference& reference, const Model& original, const Model& optimized,
                   const Options& options, const std::filesystem::path& plugin, const std::size_t* only) {
  return Judge(runtime, reference, original, optimized, options, plugin).judge(only);
}

}  // namespace modelflow
