#pragma once

#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "modelflow/report.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// `b` against the reference `a`. NaN equals NaN and an infinity itself; `max_rel` is max |a-b| over max |a|.
/// ok means: type and shape agree; floats within `tolerance` or four steps of a 16-bit type (or within 1e-6 absolute
/// where a is zero throughout); integers, booleans and strings equal, except one in a thousand elements, since float
/// reassociation may break a tie of an ArgMax or TopK, or move a rounding by one.
OutputDiff difference(const std::string& output, const Tensor& a, const Tensor& b, double tolerance);

/// The original's results without graph optimisation, on the feeds that it accepts; of STFT and DFT the exact ones (see
/// src/verify/exact_spectra.h).
struct Reference {
  std::vector<Feeds> feeds;
  std::vector<std::vector<Tensor>> outputs;  ///< [feeds][outputs]
  std::vector<std::string> names;
  std::vector<bool> random;  ///< outputs that differ from run to run, not compared
  std::string why_not;       ///< not empty: nothing could be run, and why
};
Reference make_reference(Runtime& runtime, const Model& original, const Options& options);

/// The largest difference per output over all feeds of `optimized` (runnable: functions emitted), with the plugin or
/// without one. Without a given tolerance stock ONNX Runtime gives a second opinion on `original` where an output is
/// off: what its own optimisations change as well is no failure. A model that does not load or run at all gives one
/// diff named "" that is not ok; `why` says the message.
std::vector<OutputDiff> compare(Runtime& runtime, const Reference& reference, const Model& original,
                                const Model& optimized, const Options& options, const std::filesystem::path& plugin,
                                std::string* why = nullptr);
bool all_ok(const std::vector<OutputDiff>& diffs);

/// A session on a model in memory; models too large for one buffer go through a temporary file.
std::unique_ptr<Session> open_session(Runtime& runtime, const Model& model, const SessionOptions& options);

}  // namespace modelflow
