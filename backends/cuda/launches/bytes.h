// Products, convolutions and sums of 8-bit numbers, and the way into 8 bits and back.
#pragma once

#include "backends/cuda/launches/products.h"

namespace modelflow::cuda {

/// y: steps of activation((sum + shift) * scale + the residual before) and the residual after it.
struct StepsEpilogue {
  const std::int32_t* shift;  ///< by column: the bias, less what the zero point of x brings into each sum
  const float* scale;         ///< by column: what 1 of a sum stands for
  const std::uint8_t* residual;
  EpilogueLaunch::Residual use;
  Steps residual_steps, y;
  ActivationSpec activation;
};

/// y = conv(x, w) of steps. Weights lie as [filter, depth], rows of `w_stride` bytes with zeros behind them; for
/// `direct` as [plane, row, column, channel of the group, filter].
struct QConvLaunch {
  ConvLaunch conv;  ///< its numbers and its epilogue count for nothing
  std::int64_t w_stride;
  bool four;  ///< direct, a filter for each channel: four side by side
  StepsEpilogue epilogue;
};

/// Rows of floats as steps, with a scale of its own for each row and a zero point of 128, or by `known`. Rows of y have
/// `stride` bytes, zeros behind the last step.
struct RowStepsLaunch {
  Number number;  ///< of x
  std::int64_t rows, n, stride;
  const void* x;
  std::uint8_t* y;
  float* scales;  ///< by row; null: known
  Steps known;
};

/// y = epilogue(a b): a [m, stride] as RowStepsLaunch writes them, b [n, stride] with signs, zeros behind
/// the k that count.
struct QMatMulLaunch {
  Number number;  ///< of y and the epilogue
  std::int64_t m, n, stride;
  const std::uint8_t *a, *b;
  const float* a_scales;      ///< by row; null: in b_scales
  const float* b_scales;      ///< by column
  const std::int32_t* shift;  ///< by column, added to a sum
  void* y;
  bool large, wide_y;  ///< as in MatMulLaunch
  EpilogueLaunch epilogue;
};

/// Matrices of [rows, columns] from floats into steps or back; `turned`: y is [columns, rows].
struct QuantizeLaunch {
  Number number;  ///< of the floats
  std::int64_t matrices, rows, columns;
  bool turned;
  Steps steps;
  const void* x;
  void* y;
};

/// y = a + b, not below 0 with `relu`.
struct QAddLaunch {
  std::int64_t elements;
  Places places;
  const std::uint8_t *a, *b;
  std::uint8_t* y;
  Steps a_steps, b_steps, y_steps;
  bool relu;
};

}  // namespace modelflow::cuda
