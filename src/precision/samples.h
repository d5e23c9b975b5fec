// Calibration samples.
#pragma once

#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"

namespace modelflow {

/// The same samples, each checked against the inputs of `model`, which has to outlive them: Error(usage) names the one
/// that does not fit, by its place in the user's data.
CalibrationData checked_samples(const Model& model, CalibrationData data);

/// Calibration sample number `index`, checked against the inputs of the model; none behind the last. Throws
/// Error(usage) with one line when it does not fit, when there is no data at all, or none for index 0.
std::optional<Feeds> calibration_sample(const Model& model, const Options& options, std::size_t index);

/// The user's samples, in two parts: every fourth is held out from calibration and evaluates its result. With fewer
/// than four, or without calibration data, the same samples serve both.
class SplitSamples {
 public:
  /// `otherwise`: inputs to evaluate with where options.calibration is empty.
  SplitSamples(const Options& options, const std::vector<Feeds>& otherwise);
  const std::vector<Feeds>& evaluation() const { return evaluation_; }
  CalibrationData calibration() const;
  bool held_out() const { return held_out_; }

 private:
  CalibrationData all_;
  std::vector<Feeds> evaluation_;
  bool held_out_ = false;
};

}  // namespace modelflow
