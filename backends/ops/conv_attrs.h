// The attributes of the convolutions, where their operands stand, and their shape rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/call_attrs.h"
#include "backends/ops/residual.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

extern const FusedOp conv_op;

/// The attributes of one Conv call, read and checked once: every list has one entry per spatial axis (pads two).
struct ConvAttrs {
  Ints kernel, strides, dilations, pads;
  std::int64_t group = 1;
  bool has_bias = false;
  bool has_slopes = false;  ///< activation PRelu: one for each filter
  /// Convolves Relu(x * pre_scale + pre_shift), a number of each for every channel of x: networks that normalize and
  /// activate first (pre-activation: He et al. 2016, arXiv 1603.05027; DenseNet).
  bool has_pre = false;
  Residual residual = Residual::none;
  bool x_last = false, y_last = false;  ///< channels last

  /// Throws Error(invalid_input) when the attributes contradict each other.
  explicit ConvAttrs(const CallAttrs& attrs);
  std::size_t rank() const { return kernel.size(); }
  std::size_t inputs() const { return residual_index() + (residual != Residual::none); }
  std::size_t bias_index() const { return 2u; }
  std::size_t slopes_index() const { return 2u + has_bias; }
  std::size_t pre_index() const { return 2u + has_bias + has_slopes; }  ///< of the scales; shifts are next
  std::size_t residual_index() const { return pre_index() + 2u * has_pre; }
  /// Output extent of spatial axis `axis`; 0 or less when the window does not fit.
  std::int64_t extent(std::size_t axis, std::int64_t in) const;
  /// Dims of y for these dims of x and `m` output channels.
  Dims output_dims(std::span<const std::int64_t> x, std::int64_t m) const;
};

/// Where a convolution has its other operands; `bias`, `slopes` and `pre` are 0 when there are none.
struct ConvInputs {
  std::size_t bias, residual, slopes = 0, pre = 0;
};

/// Shape and dtype of y from those of x and w; a no when operands and attributes contradict each other.
Verdict infer_conv(Call& call, const ConvAttrs& conv, ConvInputs at);

/// Every attribute that Conv shares with ConvBf16, with its default value.
Attrs conv_defaults();

/// A Conv call for samples, tests and benchmarks: shapes of x and w (plain ONNX), everything else at its default.
/// The constants are not filled in.
Call conv_call(Dims x, Dims w, Attrs attrs = {});
/// Layers of real models, then every option once; weights and bias filled in.
std::vector<Call> conv_samples();

}  // namespace modelflow::ops
