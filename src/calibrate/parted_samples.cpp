#include "src/calibrate/parted_samples.h"

namespace modelflow {
namespace {

constexpr std::size_t kEvery = 4;
constexpr std::size_t kMostJudges = 32;  // each is run by every candidate

}  // namespace

PartedSamples::PartedSamples(const Options& options, const std::vector<Feeds>& otherwise) : all_(options.calibration) {
  if (!all_) {
    judges_ = otherwise;
    return;
  }
  for (std::size_t i = kEvery - 1; judges_.size() < kMostJudges; i += kEvery) {
    std::optional<Feeds> feeds = all_(i);
    if (!feeds) break;
    judges_.push_back(std::move(*feeds));
  }
  held_back_ = !judges_.empty();
  for (std::size_t i = 0; !held_back_ && i + 1 < kEvery; ++i)
    if (std::optional<Feeds> feeds = all_(i)) judges_.push_back(std::move(*feeds));
  if (judges_.empty()) throw Error(ErrorKind::usage, "there is not one sample to calibrate with");
}

CalibrationData PartedSamples::seen() const {
  if (!held_back_) return all_;
  return [all = all_](std::size_t i) { return all(i + i / (kEvery - 1)); };
}

}  // namespace modelflow
