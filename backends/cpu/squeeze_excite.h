#pragma once

#include <memory>

#include "backends/cpu/activation.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// The two vectors between mean and product, read once from a call of SqueezeExcite or QSqueezeExcite.
class ExciteGates {
 public:
  /// Throws Error(unsupported) when a weight is not constant.
  explicit ExciteGates(const Call& call);
  std::size_t channels() const { return static_cast<std::size_t>(b2_.elements()); }
  std::size_t rank() const { return rank_; }  ///< of x
  /// Turns `batch` rows of means into what the channels are multiplied with.
  void apply(std::size_t batch, float* rows, Invocation& call) const;

 private:
  ActivationSpec activation_, gate_;
  bool skip_;
  std::shared_ptr<const std::byte> w1_;
  Tensor b1_;
  std::shared_ptr<const std::byte> w2_;
  Tensor b2_;
  std::size_t rank_;
};

/// What both kernels ask of the call, besides the type of x.
Verdict accepts_excite(const Call& call);

}  // namespace modelflow::cpu
