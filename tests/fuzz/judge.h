// What an original gives, and whether something else gives the same.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/runtime.h"
#include "tests/fuzz/data.h"

namespace modelflow::fuzz {

/// The original in ONNX Runtime without optimisations on all samples that it takes, and how far rounding may move its
/// results. Floats are equal where they differ by no more than eight times what noise of a last digit in every value of
/// the original changes (see noise.h); everything else must be equal, unless that noise changes it too.
class Judge {
 public:
  Judge(Runtime& runtime, const Model& original, std::uint64_t seed, bool kinds, bool empty);

  bool runs() const { return !references_.empty(); }
  const std::vector<Sample>& samples() const { return samples_; }
  /// What is wrong with the results of `session` on one sample; empty: nothing. Also how its outputs were declared.
  std::string difference(std::size_t sample, const std::vector<Tensor>& results);
  /// The same for a form in lower precision: `share` of the largest magnitude is half a step of what products read.
  std::string coarse_difference(std::size_t sample, const std::vector<Tensor>& results, double share);
  /// Why the original's results on this sample are no reference (tests/left_open.h); asked where something
  /// differs.
  const std::string& left_open(std::size_t sample);
  bool random(std::size_t output) const { return random_[output]; }
  /// Outputs that only their ill condition excused: noise of a last digit moves them by more than a hundredth.
  int excused() const { return excused_; }

 private:
  struct Moved {
    std::vector<double> by;   ///< per output: the largest change of an element
    std::vector<bool> kinds;  ///< per output: NaN or infinities come and go, or integers change
  };
  using Sessions = std::vector<std::unique_ptr<Session>>;
  void look_at(const Graph& graph);
  std::string difference_now(std::size_t sample, const std::vector<Tensor>& results);
  std::string coarse_difference_now(std::size_t sample, const std::vector<Tensor>& results, double share);
  /// Whether `found` stays when noise is drawn often: two signs come out alike eight times in a row once in 128.
  std::string certain(const std::function<std::string()>& found);
  Moved moved(const Sessions& noisy, const Sessions& once, std::size_t sample) const;
  Sessions open(const std::function<Model(std::uint64_t seed)>& noisy) const;
  const Moved& rounding(std::size_t sample);
  void forget_noise();
  /// Of an output by its largest number: Sigmoid in ONNX Runtime's recurrent layers is 0 below -18, and near 1 as exact
  /// as 1 is.
  double scale_of(double largest) const { return recurrent_ ? std::max(largest, 1.0) : largest; }

  Runtime& runtime_;
  const Model& original_;
  bool kinds_;
  bool reduces_ = false;    ///< over nothing ONNX Runtime gives extents of 0 where they are 1
  bool recurrent_ = false;  ///< tanh in ONNX Runtime's recurrent layers ends at 1.0000005
  std::vector<Sample> samples_;
  std::vector<std::vector<Tensor>> references_;
  std::vector<std::string> names_;
  std::vector<bool> random_;  ///< outputs that differ from run to run, or whose kinds are nobody's promise
  Sessions noisy_, coarse_, in_steps_;
  double coarse_share_ = 0;
  std::map<std::size_t, std::string> left_open_;
  std::map<std::size_t, Moved> rounding_, coarse_moved_;
  std::string no_noise_;  ///< why noise could not be added
  std::size_t runs_;      ///< with noise
  int excused_ = 0;
};

}  // namespace modelflow::fuzz
