// Results of two models judged output by output.
#include "src/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/verify/parts.h"
#include "src/verify/probe.h"

namespace modelflow {
namespace {

constexpr double kAsMuch = 8;  // one rounding may be so much larger than another

void merge(OutputDiff& worst, const OutputDiff& diff) {
  const bool larger = diff.max_rel > worst.max_rel;
  if (larger) worst.feed = diff.feed;
  worst.max_abs = std::max(worst.max_abs, diff.max_abs);
  worst.max_rel = std::max(worst.max_rel, diff.max_rel);
  worst.equal_type = worst.equal_type && diff.equal_type;
  worst.ok = worst.ok && diff.ok;
  if (!diff.explained.empty() && (larger || worst.explained.empty())) worst.explained = diff.explained;
}

bool is_no_larger(const OutputDiff& diff, const OutputDiff& than) {
  return (diff.equal_type || !than.equal_type) && diff.max_rel <= kAsMuch * than.max_rel;
}

/// Session entries that make the plugin choose kernels as the target does, where this machine has them.
std::map<std::string, std::string> kernels_of(const Target& target) {
  if (!runs_here(target) || target.is_host()) return {};
  return {{"modelflow.target", target.str()}};
}

class Judge {
 public:
  Judge(Runtime& runtime, const Reference& reference, const Model& original, const Model& optimized,
        const Options& options, const Setting& setting)
      : sessions_(runtime, reference.folder.get()),
        reference_(reference),
        original_(original),
        optimized_(optimized),
        options_(options),
        setting_(setting),
        session_{.threads = options.threads,
                 .optimize = setting.optimize,
                 .plugin = setting.plugin,
                 .config = kernels_of(options.target)} {}

  Comparison judge() {
    for (const std::string& name : reference_.names) found_.diffs.push_back({.output = name});
    try {
      const auto session = open();
      for (std::size_t i = 0; i < reference_.feeds.size() && found_.ok; ++i)
        if (!setting_.only || *setting_.only == i) look_at(i, *session);
    } catch (const Error& error) {
      refuse(0, error.what());
    }
    return std::move(found_);
  }

 private:
  /// Without ONNX Runtime's own optimizations where these do not even load the original.
  std::unique_ptr<Session> open() {
    try {
      return open_session(sessions_, optimized_, session_);
    } catch (const Error& error) {
      std::string why;
      if (!session_.optimize || loads(sessions_, original_, why)) throw;
      found_.note = std::string("ONNX Runtime's own optimizations do not load the original: the result is judged ") +
                    "without them (" + error.what() + ")";
      session_.optimize = false;
      return open_session(sessions_, optimized_, session_);
    }
  }

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
      if (feed.empty && !survives(sessions_, optimized_, feed.values, session_, options_.limits))
        throw Error(ErrorKind::unsupported, "it ends the process");
      results = session.run(feed.values);
    } catch (const Error& error) {
      if (setting_.may_refuse_empty && has_empty_input(feed.values)) {
        found_.note = "without the plugin ONNX Runtime does not run the result on feed '" + feed.name +
                      "', as it runs the original: " + error.what();
        return;
      }
      if (!session_.optimize || of_stock(i, 0) || !plain(i)) return refuse(i, error.what());
      note(feed.name, std::string("break the original: ") + error.what());
      results = *plain(i);
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
                      options_.tolerance ? 0 : reference_.floors[k], reference_.sections[k]);
  }

  void look_again(std::size_t i, std::size_t k, const Tensor& result, OutputDiff& diff) {
    const bool kinds = reference_.feeds[i].kinds_only;
    if ((options_.tolerance && !kinds) || !plain(i)) return;
    const Tensor* stock = of_stock(i, k);
    const OutputDiff without = distance(i, k, (*plain(i))[k]);
    const OutputDiff of_original = worst_of_stock(i, k);
    if (without.ok && !of_original.ok && is_no_larger(diff, of_original)) {
      diff.explained = "ONNX Runtime's own optimizations change it as well";
      note(of_original.feed,
           "change output '" + of_original.output + "' of the original, which " + describe(of_original));
    } else if (kinds) {
      if (stock && distance(i, k, result, stock).ok) diff.explained = "the model leaves it open";
    } else if (!without.ok && std::isfinite(diff.max_rel) && every_part_agrees(i) &&
               (is_no_larger(diff, without) || is_no_larger(diff, of_original))) {
      if (const std::string by = what_enlarges(i, k, diff); !by.empty())
        diff.explained = "rounding: every part of the model agrees, and " + by;
    } else if (without.ok && moves_as_far(i, k, result)) {
      diff.explained = "rounding: last digits of its constants move the original as far";
    }
    diff.ok = !diff.explained.empty();
  }

  /// Once is enough: what breaks one feed mostly breaks others.
  void note(const std::string& feed, const std::string& what) {
    if (found_.note.empty())
      found_.note =
          "ONNX Runtime's own optimizations " + what + " (feed '" + feed + "'): the result is judged without them";
  }

  /// The original in stock ONNX Runtime; null where that does not run.
  const Tensor* of_stock(std::size_t i, std::size_t k) {
    if (!session_.optimize) return nullptr;
    const std::vector<Tensor>* results = run(stock_, i, original_, {.threads = options_.threads});
    return results ? &(*results)[k] : nullptr;
  }

  /// What ONNX Runtime's optimizations do to this output of the original: on this feed, else on the others. Where
  /// numbers are rounded to steps it is chance which feeds they show on.
  OutputDiff worst_of_stock(std::size_t i, std::size_t k) {
    OutputDiff worst;
    for (const bool here : {true, false})
      for (std::size_t j = 0; j < reference_.feeds.size() && worst.ok; ++j) {
        if (here != (i == j) || reference_.feeds[i].kinds_only != reference_.feeds[j].kinds_only) continue;
        if (const Tensor* stock = of_stock(j, k)) worst = distance(j, k, *stock);
        worst.feed = reference_.feeds[j].name;
      }
    return worst;
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
        const Feed& feed = reference_.feeds[i];
        if (!feed.empty || survives(sessions_, model, feed.values, session, options_.limits))
          known[i] = open_session(sessions_, model, session)->run(feed.values);
      } catch (const Error&) {
        known[i].clear();
      }
    }
    return known[i].size() == reference_.names.size() ? &known[i] : nullptr;
  }

  bool every_part_agrees(std::size_t i) {
    if (!parts_.contains(i)) parts_[i] = parts_agree(i);
    return parts_[i];
  }

  /// Why parts that agree may come to such a difference; empty where nothing explains it.
  std::string what_enlarges(std::size_t i, std::size_t k, const OutputDiff& diff) const {
    if (decides(original_.graph())) return "it decides by values";
    return digits_move_as_far(i, k, diff) ? "last digits move the original as far" : "";
  }

  /// Many parts that each are nearly right may be a fault all together, which no last digits explain.
  bool digits_move_as_far(std::size_t i, std::size_t k, const OutputDiff& diff) const {
    try {
      return digits_move(sessions_, original_, reference_, i, k, diff.max_abs / kAsMuch);
    } catch (const Error&) {
      return false;
    }
  }

  /// What ONNX Runtime's optimizations of a model that is right without them come to.
  bool moves_as_far(std::size_t i, std::size_t k, const Tensor& result) const {
    try {
      return is_rounding(sessions_, original_, reference_, i, k, result);
    } catch (const Error&) {
      return false;
    }
  }

  bool parts_agree(std::size_t i) {
    try {
      return compare_parts(sessions_, original_, optimized_, reference_.feeds[i].values, reference_, session_).agree;
    } catch (const Error&) {
      return false;
    }
  }

  Sessions sessions_;
  const Reference& reference_;
  const Model &original_, &optimized_;
  const Options& options_;
  const Setting& setting_;
  SessionOptions session_;
  Comparison found_;
  Results stock_, plain_;
  std::map<std::size_t, bool> parts_;
};

}  // namespace

bool runs_here(const Target& target) {
  return target.device == Device::cpu && (target.is_host() || Target::host().has(target.isas));
}

Comparison compare(Runtime& runtime, const Reference& reference, const Model& original, const Model& optimized,
                   const Options& options, const Setting& setting) {
  return Judge(runtime, reference, original, optimized, options, setting).judge();
}

}  // namespace modelflow
