// Weights times the values of narrow heads: sums along the keys, for files of one instruction set (see vector.h).
#pragma once

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/vector/transpose.h"
#ifdef __AVX512F__
#include "backends/cpu/attention/softmax_avx512.h"
#endif

// A register of a row of values holds one key, and most of it is empty where a head is narrower than the register. So
// the values are turned: registers of a column hold as many keys as they have lanes, and none is lost. The price is a
// sum over the lanes for each result, which many keys pay for.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kNarrowColumns = 4;  // sums of a row side by side
constexpr std::size_t kNarrowRows = kLanes == 16 ? 4 : 2;

inline std::size_t whole_registers(std::size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

/// Zen 5, AVX-512: heads of 16 and 64 to 343 keys take 0.9 of the time, heads of 4 with 343 keys 0.65; 13 keys with
/// heads of 16 would take 1.06 of it.
inline bool narrow(const AttentionHead& h) { return h.width <= kLanes && h.keys >= 2 * h.width; }

inline std::size_t narrow_columns(const AttentionHead& h) {
  return (h.width + kNarrowColumns - 1) / kNarrowColumns * kNarrowColumns;
}

inline std::size_t narrow_floats(const AttentionHead& h) { return narrow_columns(h) * whole_registers(h.keys); }

/// The values of one of `parts` shares of the keys, column by column, with 0 where there is no key or no column.
[[maybe_unused]] void pack_narrow(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  const std::size_t step = whole_registers(h.keys), blocks = step / kLanes;
  for (std::size_t j = blocks * part / parts * kLanes; j < blocks * (part + 1) / parts * kLanes; j += kLanes) {
    transpose_block(h.v + j * h.v_row, h.v_row, packed + j, step, h.keys - j, h.width, Whole{});
    for (std::size_t c = h.width; c < narrow_columns(h); ++c) store(packed + c * step + j, Floats{});
  }
}

/// A product in numbers: y [rows, width] = weights [rows, keys] values, or added to y. The weights go on to the end of
/// their last register, with zeros.
struct NarrowProduct {
  const float* weights;
  std::size_t weights_row;
  const float* values;  // from its first key on
  std::size_t values_row, keys, width;
  float* y;
  std::size_t y_row;
  bool adds;
};

MODELFLOW_INLINE void sums_of_lanes(const Floats (&x)[kNarrowColumns], float* sums) {
#ifdef __AVX512F__
  _mm_storeu_ps(sums, sums4(x));
#elif defined(__AVX2__)
  const __m256 halves = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
  _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
#else
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kNarrowColumns; ++i) sums[i] = sum_of(x[i]);
#endif
}

template <std::size_t Rows>
MODELFLOW_INLINE void multiply_narrow(const NarrowProduct& p, std::size_t row) {
  for (std::size_t c = 0; c < p.width; c += kNarrowColumns) {
    const float *weights = p.weights + row * p.weights_row, *values = p.values + c * p.values_row;
    Floats sums[Rows][kNarrowColumns] = {};
    for (std::size_t j = 0; j < p.keys; j += kLanes) {
      Floats column[kNarrowColumns];
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kNarrowColumns; ++i) column[i] = load(values + i * p.values_row + j);
#pragma GCC unroll 4
      for (std::size_t r = 0; r < Rows; ++r) {
        const Floats weight = load(weights + r * p.weights_row + j);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kNarrowColumns; ++i) sums[r][i] += weight * column[i];
      }
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < Rows; ++r) {
      float *y = p.y + (row + r) * p.y_row + c, found[kNarrowColumns];
      sums_of_lanes(sums[r], found);
      for (std::size_t i = 0; i < kNarrowColumns; ++i) y[i] = p.adds ? y[i] + found[i] : found[i];
    }
  }
}

/// y has room for whole kNarrowColumns.
[[maybe_unused]] void multiply_narrow(const NarrowProduct& p, std::size_t rows) {
  std::size_t row = 0;
  for (; row + kNarrowRows <= rows; row += kNarrowRows) multiply_narrow<kNarrowRows>(p, row);
  for (; row < rows; ++row) multiply_narrow<1>(p, row);
}

}  // namespace
}  // namespace modelflow::cpu
