// Squeeze and excitation between its two passes: from the means of the channels to their factors.
#pragma once

#include <memory>

#include "backends/cpu/loops/vector_code.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// A 1x1 convolution of one pixel: a vector by a matrix of float32, or of int8 with a scale per filter.
class ExciteMatrix {
 public:
  /// The weights are input `index`, behind them the scales where they are int8, then the bias. Throws
  /// Error(unsupported) when one is not constant.
  ExciteMatrix(const Call& call, std::size_t index);
  std::size_t filters() const { return static_cast<std::size_t>(bias_.elements()); }
  /// y[m] = bias[m] + sum over c of x[c] * w[m, c]
  void apply(const ChannelLoops& loops, const float* x, float* y, Invocation& call) const;

 private:
  void one_panel(const ChannelLoops& loops, std::size_t panel, const float* x, float* y) const;

  bool bytes_;
  std::size_t channels_;
  std::shared_ptr<const std::byte> weights_;  ///< [panels, channels, filters of a panel]
  Tensor scale_, bias_;
};

/// The two vectors between mean and product, read once from a call of SqueezeExcite or QSqueezeExcite.
class ExciteGates {
 public:
  ExciteGates(const Call& call, const VectorCode& code);
  const VectorCode& code() const { return code_; }
  std::size_t channels() const { return excite_.filters(); }
  std::size_t rank() const { return rank_; }  ///< of x
  bool skip() const { return skip_; }         ///< whether x is added to what is scaled
  /// Turns `batch` rows of means into the gates that the channels are multiplied with.
  void apply(std::size_t batch, float* rows, Invocation& call) const;

 private:
  const VectorCode& code_;
  ActivationSpec activation_, gate_;
  bool skip_;
  ExciteMatrix squeeze_, excite_;
  std::size_t rank_;
};

/// What both kernels ask of the call, besides the type of x.
Verdict accepts_excite(const Call& call, const Target&);

}  // namespace modelflow::cpu
