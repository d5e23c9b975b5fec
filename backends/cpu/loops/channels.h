// Loops over tensors whose channels lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelflow::cpu {

/// Windows side by side over pixels whose channels lie together: `deep` x `high` x `wide` pixels each, `plane` numbers
/// from one plane of pixels to the next, `line` from one row, `step` from one window to the next.
template <class T>
struct Windows {
  const T* x;
  std::size_t deep, high, wide, plane, line, channels, count, step;
};

/// Loops over tensors whose channels lie side by side: [rows, channels], rows being pixels. Written once in
/// channels_loops.h.
struct ChannelLoops {
  /// sum[c] += x[r, c] over all rows.
  void (*add_rows)(const float* x, std::size_t rows, std::size_t channels, float* sum);
  /// best[c] = max(best[c], x[r, c]), NaN where there is one; `stride` floats from one row to the next.
  void (*max_rows)(const float* x, std::size_t rows, std::size_t stride, std::size_t channels, float* best);
  /// The same of bfloat16.
  void (*max_rows_bf16)(const std::uint16_t* x, std::size_t rows, std::size_t stride, std::size_t channels,
                        float* best);
  /// y[i, c] = the largest x[r, c] of window i, -inf of none, NaN where there is one.
  void (*max_windows)(const Windows<float>& windows, float* y);
  /// y[i, c] = the sum of x[r, c] over window i, divided by `count`.
  void (*mean_windows)(const Windows<float>& windows, float count, float* y);
  /// y[r, c] = x[r, c] * factor[c], and with `skip` x[r, c] added to it.
  void (*scale_rows)(const float* x, const float* factor, bool skip, std::size_t rows, std::size_t channels, float* y);
  /// The same of one channel: y[i] = x[i] * factor, and with `skip` x[i] added to it.
  void (*scale)(const float* x, float factor, bool skip, std::size_t n, float* y);
  /// The sum of n floats, in as many partial sums as four vectors have lanes.
  float (*sum)(const float* x, std::size_t n);
  /// y[j] = sum over i of x[i] * w[i, j] for the kPanel columns of w [in, kPanel].
  void (*vector_matrix)(const float* x, const float* w, std::size_t in, float* y);
  void (*vector_bytes)(const float* x, const std::int8_t* w, std::size_t in, float* y);
  /// y[i] = x[i] in bfloat16, and back.
  void (*narrow)(const float* x, std::size_t n, std::uint16_t* y);
  void (*widen)(const std::uint16_t* x, std::size_t n, float* y);
  /// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns.
  void (*transpose)(const float* x, std::size_t x_step, float* y, std::size_t y_step, std::size_t rows,
                    std::size_t columns);
  static constexpr std::size_t kPanel = 64;
};

}  // namespace modelflow::cpu
