#pragma once

#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// The user's samples, parted: every fourth is held back from calibration and judges its result. With fewer than four,
/// or without calibration data, the same samples serve both.
class PartedSamples {
 public:
  /// `otherwise`: inputs to judge by where options.calibration is empty.
  PartedSamples(const Options& options, const std::vector<Feeds>& otherwise);
  const std::vector<Feeds>& judges() const { return judges_; }
  bool held_back() const { return held_back_; }
  /// What calibration may see.
  CalibrationData seen() const;

 private:
  CalibrationData all_;
  std::vector<Feeds> judges_;
  bool held_back_ = false;
};

}  // namespace modelflow
