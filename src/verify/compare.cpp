#include "src/verify/compare.h"

#include <algorithm>

#include "modelflow/random.h"
#include "src/verify/exact_spectra.h"
#include "src/verify/feeds.h"

namespace modelflow {
namespace {

constexpr double kTolerance = 1e-4;  // where none is given: float32 sums in another order

void merge(OutputDiff& worst, const OutputDiff& diff) {
  worst.max_abs = std::max(worst.max_abs, diff.max_abs);
  worst.max_rel = std::max(worst.max_rel, diff.max_rel);
  worst.equal_type = worst.equal_type && diff.equal_type;
  worst.ok = worst.ok && diff.ok;
}

/// How far stock ONNX Runtime with its own optimisations is from the reference, per feeds and output.
class SecondOpinion {
 public:
  SecondOpinion(Runtime& runtime, const Reference& reference, const Model& original, const Options& options)
      : runtime_(runtime), reference_(reference), original_(original), options_(options) {}

  bool excuses(const OutputDiff& diff, std::size_t feeds, std::size_t output) {
    if (!diff.equal_type) return false;
    if (!session_) session_ = open_session(runtime_, original_, {.threads = options_.threads});
    if (results_.empty()) results_.resize(reference_.feeds.size());
    if (results_[feeds].empty()) results_[feeds] = session_->run(reference_.feeds[feeds]);
    const OutputDiff stock =
        difference(diff.output, reference_.outputs[feeds][output], results_[feeds][output], kTolerance);
    return diff.max_rel <= 4 * stock.max_rel;
  }

 private:
  Runtime& runtime_;
  const Reference& reference_;
  const Model& original_;
  const Options& options_;
  std::unique_ptr<Session> session_;
  std::vector<std::vector<Tensor>> results_;
};

void compare_session(Session& session, const Reference& reference, SecondOpinion& second,
                     std::optional<double> tolerance, std::vector<OutputDiff>& worst) {
  for (std::size_t i = 0; i < reference.feeds.size(); ++i) {
    const std::vector<Tensor> results = session.run(reference.feeds[i]);
    if (results.size() != reference.names.size()) throw Error(ErrorKind::internal, "the number of outputs has changed");
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (reference.random[k]) continue;
      OutputDiff diff =
          difference(reference.names[k], reference.outputs[i][k], results[k], tolerance.value_or(kTolerance));
      if (!diff.ok && !tolerance && second.excuses(diff, i, k)) diff.ok = true;
      merge(worst[k], diff);
    }
  }
}

/// Runs what the model takes of one group; refusals are collected.
void run_group(Session& session, const std::vector<Feeds>& group, Reference& reference,
               std::vector<std::string>& refusals) {
  for (const Feeds& feeds : group) {
    try {
      reference.outputs.push_back(session.run(feeds));
      reference.feeds.push_back(feeds);
    } catch (const Error& error) {
      refusals.push_back(error.what());
    }
  }
}

}  // namespace

Reference make_reference(Runtime& runtime, const Model& original, const Options& options) {
  Reference reference;
  std::vector<std::string> refusals;
  try {
    const std::vector<std::vector<Feeds>> groups =
        options.inputs.empty() ? feed_groups(original, options) : std::vector<std::vector<Feeds>>{options.inputs};
    const std::optional<Model> exact = with_exact_spectra(original);
    const auto session =
        open_session(runtime, exact ? *exact : original, {.threads = options.threads, .optimize = false});
    for (const auto& [name, type] : session->outputs()) reference.names.push_back(name);
    reference.random.assign(reference.names.size(), false);
    for (const std::vector<Feeds>& group : groups)
      if (reference.feeds.empty()) run_group(*session, group, reference, refusals);
    if (!options.inputs.empty() && !refusals.empty()) throw Error(ErrorKind::usage, "given data: " + refusals.front());
    if (!reference.feeds.empty() && draws(original.graph(), &original)) {
      const std::vector<Tensor> again = session->run(reference.feeds[0]);
      for (std::size_t k = 0; k < again.size(); ++k)
        reference.random[k] = !difference("", reference.outputs[0][k], again[k], 0).ok;
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage) throw;
    reference.why_not = error.what();
    return reference;
  }
  if (reference.feeds.empty()) reference.why_not = refusals.empty() ? "no feeds" : refusals.front();
  return reference;
}

std::vector<OutputDiff> compare(Runtime& runtime, const Reference& reference, const Model& original,
                                const Model& optimized, const Options& options, const std::filesystem::path& plugin,
                                std::string* why) {
  std::vector<OutputDiff> worst;
  for (const std::string& name : reference.names) worst.push_back({.output = name});
  SecondOpinion second(runtime, reference, original, options);
  try {
    const auto session = open_session(runtime, optimized, {.threads = options.threads, .plugin = plugin});
    compare_session(*session, reference, second, options.tolerance, worst);
  } catch (const Error& error) {
    if (why) *why = error.what();
    return {{.output = "", .equal_type = false, .ok = false}};
  }
  return worst;
}

}  // namespace modelflow
