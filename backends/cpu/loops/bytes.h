// Loops over 8-bit numbers: windows, sums, rescaling, and quantization from and to floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/loops/channels.h"

namespace modelflow::cpu {

/// The zero points of a rescaling, (x - x_zero) * factor + y_zero, rounded half to even and saturated.
struct Rescale {
  std::int32_t x_zero, y_zero;
};

/// 8-bit numbers and what they stand for: scale * (x - zero).
struct Quantization {
  float scale;
  std::int32_t zero;
};

/// The sum of what two 8-bit numbers stand for, not below 0 where `relu`, as an 8-bit number of its own.
struct ByteSum {
  Quantization a, b, y;
  bool relu;
};

/// An image that is moved between channels second and channels last, and the pixels [begin, end) that a loop moves.
struct Planes {
  std::size_t pixels, channels, begin, end;
};

/// Loops over 8-bit numbers.
struct ByteLoops {
  /// y[c] = the largest of a channel of the first window; 0 where it is empty.
  void (*max_window)(const Windows<std::uint8_t>& window, std::uint8_t* y);
  /// sum[c] += x[r, c] over all rows; `stride` bytes from one row to the next.
  void (*add_rows)(const std::uint8_t* x, std::size_t rows, std::size_t stride, std::size_t channels,
                   std::uint32_t* sum);
  /// The sum of n numbers.
  std::uint64_t (*sum)(const std::uint8_t* x, std::size_t n);
  /// y[r, c] = rescaled x[r, c] with factor[c].
  void (*rescale_rows)(const Rescale& rescale, const std::uint8_t* x, const float* factor, std::size_t rows,
                       std::size_t channels, std::uint8_t* y);
  /// The same with one factor.
  void (*rescale)(const Rescale& rescale, const std::uint8_t* x, float factor, std::size_t n, std::uint8_t* y);
  void (*quantize)(const Quantization& q, const float* x, std::size_t n, std::uint8_t* y);
  void (*dequantize)(const Quantization& q, const std::uint8_t* x, std::size_t n, float* y);
  /// From channels second to channels last.
  void (*quantize_last)(const Quantization& q, const Planes& planes, const float* x, std::uint8_t* y);
  /// From channels last to channels second.
  void (*dequantize_second)(const Quantization& q, const Planes& planes, const std::uint8_t* x, float* y);
  /// With factors made of the scales: what lies in the middle of two steps may be rounded to the other side, and
  /// factors above 1e6 leave 32 bits.
  void (*add)(const ByteSum& sum, const std::uint8_t* a, const std::uint8_t* b, std::size_t n, std::uint8_t* y);
  /// As the op says it.
  void (*add_by_definition)(const ByteSum& sum, const std::uint8_t* a, const std::uint8_t* b, std::size_t n,
                            std::uint8_t* y);
};

}  // namespace modelflow::cpu
