// What the original computes: the results that all others are judged by.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "modelflow/runtime.h"
#include "src/verify/sections.h"
#include "src/verify/session.h"

namespace modelflow {

/// One set of inputs that the original runs.
struct Feed {
  std::string name = {};
  Feeds values = {};
  bool kinds_only = false;  ///< of its results only the kinds of numbers are compared
  bool ordinary = true;     ///< as most users have it: fit for judging low precision
  bool empty = false;       ///< it, or what is computed from it, has no elements
};

/// The original's results without graph optimisation, on the feeds that it accepts; of STFT and DFT the exact ones (see
/// src/verify/exact_spectra.h).
struct Reference {
  std::vector<Feed> feeds;
  std::vector<std::vector<Tensor>> outputs;  ///< [feeds][outputs]
  std::vector<std::string> names;
  std::vector<bool> random;        ///< outputs that differ from run to run, not compared
  std::vector<double> floors;      ///< differences as small as that mean nothing, by output
  std::vector<Sections> sections;  ///< parts of an output that are judged by themselves
  std::vector<FeedReport> list;    ///< every feed, those too that the original refuses or there was no time for
  std::optional<Model> exact;      ///< what was run where it is not the original itself
  std::string why_not;             ///< not empty: nothing could be run, and why
  std::shared_ptr<ModelFolder> folder = {};  ///< of the weights of all models that are run beside it
  std::vector<Feeds> ordinary() const;
  /// Why this output is not compared at all; empty where it is.
  std::string not_compared(std::size_t output) const;
};

/// The user's inputs, else made-up ones (src/verify/feeds.h). Behind the first set the others are run as far as the
/// original takes Options::verify_seconds for all of them, or two runs of the first for each of these seconds, four at
/// most: of a model that takes long only the quick ones, judged by their elements. Throws what Options::progress
/// throws, limits that are passed among it; whatever else the original cannot do is Reference::why_not.
Reference make_reference(Runtime& runtime, const Model& original, const Options& options);
/// The same for these feeds, which are the user's: one that the original refuses is Error(usage).
Reference make_reference(Runtime& runtime, const Model& original, const Options& options, std::vector<Feed> feeds);

}  // namespace modelflow
