// Quantizes rows of floats to 8 bits: the largest of a row, its scale, and bytes in panels.
#include "backends/cpu/gemm/quantize_rows_vnni.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/gemm/epilogue_avx512.h"
#include "backends/cpu/vector/magnitudes_avx512.h"
#include "backends/cpu/vector/steps.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kGroup = 4;  // rows whose words a 128-bit lane holds

/// Some of the rows of a panel of more than one.
struct Group {
  const float* a[kGroup];  ///< those that are missing repeat another
  __mmask8 rows;           ///< those that are not
  std::uint8_t* at;        ///< the first word of the first
  std::size_t word;        ///< bytes from a word to the next of the same row
};

/// Four vectors to bytes. The words of each 128-bit lane come from the four of them in order.
template <bool kSigned>
MODELFLOW_INLINE __m512i in_bytes(const __m512i (&x)[4]) {
  const __m512i low = _mm512_packs_epi32(x[0], x[1]), high = _mm512_packs_epi32(x[2], x[3]);
  return kSigned ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
}

/// Bytes to what is stored, and to the sums of their words.
template <bool kSigned>
MODELFLOW_INLINE __m512i finished(__m512i bytes, __m512i& sums) {
  const __m512i ones = _mm512_set1_epi8(1);
  sums = kSigned ? _mm512_dpbusd_epi32(sums, ones, bytes) : _mm512_dpbusd_epi32(sums, bytes, ones);
  return kSigned ? _mm512_xor_si512(bytes, _mm512_set1_epi8(static_cast<char>(0x80))) : bytes;
}

template <class F>
MODELFLOW_INLINE __m512i steps_of(const float* a, __mmask16 lanes, F f) {
  if (lanes == 0xffff) return f(_mm512_loadu_ps(a));
  return _mm512_maskz_mov_epi32(lanes, f(_mm512_maskz_loadu_ps(lanes, a)));
}

/// f.steps(row of the group, 16 floats) are the steps. Gives the sum of each row.
template <bool kSigned, class F>
MODELFLOW_INLINE __m128i quantize_group(const Group& g, std::size_t k, const F& f) {
  __m512i sums = _mm512_setzero_si512();
  std::uint8_t* at = g.at;
  const auto block = [&](std::size_t i, __mmask16 lanes) __attribute__((always_inline)) {
    __m512i x[kGroup];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kGroup; ++r)
      x[r] = steps_of(
          g.a[r] + i, lanes, [&](__m512 v) __attribute__((always_inline)) { return f.steps(r, v); });
    const __m512i bytes = finished<kSigned>(in_bytes<kSigned>(x), sums);
    _mm_mask_storeu_epi32(at, g.rows, _mm512_castsi512_si128(bytes));
    _mm_mask_storeu_epi32(at + g.word, g.rows, _mm512_extracti32x4_epi32(bytes, 1));
    _mm_mask_storeu_epi32(at + 2 * g.word, g.rows, _mm512_extracti32x4_epi32(bytes, 2));
    _mm_mask_storeu_epi32(at + 3 * g.word, g.rows, _mm512_extracti32x4_epi32(bytes, 3));
    at += kVnniDepth / 4 * g.word;
  };
  std::size_t i = 0;
  for (; i + 16 <= k; i += 16) block(i, 0xffff);
  if (i < k) block(i, first_lanes(k - i));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64(sums, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/// A row that has its panel for itself: its words lie side by side.
template <bool kSigned, class F>
MODELFLOW_INLINE std::int32_t quantize_row(const float* a, std::size_t k, std::uint8_t* out, const F& f) {
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i sums = _mm512_setzero_si512();
  for (std::size_t i = 0; i < k; i += 64) {
    __m512i x[4];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v)
      x[v] = steps_of(
          a + i + 16 * v,
          first_lanes(std::max(k, i + 16 * v) - i - 16 * v), [&](__m512 floats) __attribute__((always_inline)) {
            return f.steps(0, floats);
          });
    const __m512i bytes = finished<kSigned>(in_bytes<kSigned>(x), sums);
    _mm512_storeu_si512(out + i, _mm512_permutexvar_epi32(in_order, bytes));
  }
  return _mm512_reduce_add_epi32(sums);
}

/// NaN where one is.
MODELFLOW_INLINE float largest(const float* a, std::size_t k) {
  __m512i most[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  std::size_t i = 0;
  for (; i + 64 <= k; i += 64) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) most[v] = _mm512_max_epi32(most[v], sizes(_mm512_loadu_ps(a + i + 16 * v)));
  }
  for (; i < k; i += 16) {
    const __mmask16 lanes = first_lanes(k - i);
    most[0] = _mm512_max_epi32(most[0], sizes(_mm512_maskz_loadu_ps(lanes, a + i)));
  }
  return largest_of(_mm512_max_epi32(_mm512_max_epi32(most[0], most[1]), _mm512_max_epi32(most[2], most[3])));
}

/// Every row by its own largest. Where that is no number, neither is what a step of the row is worth.
struct ByRow {
  static constexpr bool kSigned = true;
  __m512 inverse[kGroup];

  float scale(std::size_t r, const float* row, std::size_t k) {
    const float range = std::max(largest(row, k), 1e-30f);
    inverse[r] = _mm512_set1_ps(127 / range);
    return step_size(range);
  }
  MODELFLOW_INLINE __m512i steps(std::size_t r, __m512 x) const {
    return _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse[r]));
  }
};

/// As QuantizeLinear says it; NaN gives 0.
struct ByTensor {
  static constexpr bool kSigned = false;
  float unit;
  __m512i zero;

  float scale(std::size_t, const float*, std::size_t) const { return unit; }
  MODELFLOW_INLINE __m512i steps(std::size_t, __m512 x) const {
    const __m512 far = _mm512_set1_ps(1e6f), steps = Steps(unit)(x);
    const __m512 within = _mm512_max_ps(_mm512_sub_ps(_mm512_setzero_ps(), far), _mm512_min_ps(far, steps));
    return _mm512_add_epi32(_mm512_cvtps_epi32(within), zero);
  }
};

/// The softmax of a row, not yet divided by its sum. Rows that see nothing are 0. Those with a score that is no number,
/// or infinite, have no softmax: neither is their scale a number.
struct ByExponential {
  static constexpr bool kSigned = false;
  ExpOfNegative exp;
  __m512 top[kGroup];

  float scale(std::size_t r, const float* row, std::size_t k) {
    const __m512 infinity = _mm512_set1_ps(-kNothing);
    __m512 most[2] = {_mm512_set1_ps(kNothing), _mm512_set1_ps(kNothing)};
    __mmask16 without = 0;
    for (std::size_t i = 0; i < k; i += 16) {
      const __m512 x = _mm512_maskz_loadu_ps(first_lanes(k - i), row + i);
      without |= _mm512_cmp_ps_mask(x, infinity, _CMP_NLT_UQ);
      most[i / 16 % 2] = _mm512_mask_max_ps(most[i / 16 % 2], first_lanes(k - i), most[i / 16 % 2], x);
    }
    const float found = _mm512_reduce_max_ps(_mm512_max_ps(most[0], most[1]));
    top[r] = _mm512_set1_ps(found == kNothing ? 0 : found);
    return without ? __builtin_nanf("") : 1.0f / 255;
  }
  MODELFLOW_INLINE __m512i steps(std::size_t r, __m512 x) const {
    return _mm512_cvtps_epi32(_mm512_mul_ps(exp(_mm512_sub_ps(x, top[r])), _mm512_set1_ps(255)));
  }
};

template <class By>
void quantize_panel(const RowPanels& panels, const float* a, std::size_t panel, const QuantizedRows& out, By by) {
  const std::size_t k = panels.k, first = panels.begin(panel), count = panels.begin(panel + 1) - first;
  std::uint8_t* at = out.steps + panels.offset(panel);
  if (count == 1) {
    out.scale[first] = by.scale(0, a + first * k, k);
    const std::int32_t sum = quantize_row<By::kSigned>(a + first * k, k, at, by);
    if (out.sums) out.sums[first] = sum;
    return;
  }
  for (std::size_t begin = 0; begin < count; begin += kGroup) {
    const std::size_t rows = std::min(kGroup, count - begin), row = first + begin;
    Group group{{}, static_cast<__mmask8>((1u << rows) - 1), at + 4 * begin, 4 * count};
    for (std::size_t r = 0; r < kGroup; ++r) {
      const std::size_t of = row + std::min(r, rows - 1);
      group.a[r] = a + of * k;
      out.scale[of] = by.scale(r, group.a[r], k);
    }
    const __m128i sums = quantize_group<By::kSigned>(group, k, by);
    if (out.sums) _mm_mask_storeu_epi32(out.sums + row, group.rows, sums);
  }
}

template <class By>
void quantize_panel(const TilePanels& panels, const float* a, std::size_t panel, const QuantizedRows& out, By by) {
  std::uint8_t* at = out.steps + panels.offset(panel);
  for (std::size_t r = panels.begin(panel); r < panels.begin(panel + 1); ++r, at += tile_row(panels.row)) {
    const float* row = a + r * panels.row;
    out.scale[r] = by.scale(0, row, panels.row);
    const std::int32_t sum = quantize_row<By::kSigned>(row, panels.row, at, by);
    if (out.sums) out.sums[r] = sum;
  }
}

template <class By, class Panels>
void by_row(const Panels& panels, const float* a, std::size_t begin, std::size_t end, const QuantizedRows& out) {
  for (std::size_t panel = begin; panel < end; ++panel) quantize_panel(panels, a, panel, out, By{});
}

template <class Panels>
void by_tensor(const Panels& panels, std::size_t k, const float* a, std::size_t begin, std::size_t end,
               const ByTensor& by, std::int32_t zero_point, const QuantizedRows& out) {
  for (std::size_t panel = begin; panel < end; ++panel) quantize_panel(panels, a, panel, out, by);
  if (!out.sums) return;
  for (std::size_t r = panels.begin(begin); r < panels.begin(end); ++r)
    out.sums[r] -= zero_point * static_cast<std::int32_t>(k);
}

}  // namespace

void pack_rows_vnni(const RowPanels& panels, const std::uint8_t* a, std::uint8_t* steps) {
  const std::size_t k = panels.k, whole = k / 4 * 4, depth = vnni_depth(k);
  for (std::size_t panel = 0; panel < panels.count(); ++panel) {
    const std::size_t first = panels.begin(panel), count = panels.begin(panel + 1) - first;
    std::uint8_t* at = steps + panels.offset(panel);
    const std::uint8_t* rows = a + first * k;
    for (std::size_t i = 0; i < whole; i += 4, at += 4 * count) {
      const std::uint8_t* from = rows + i;
      for (std::size_t r = 0; r < count; ++r, from += k) std::memcpy(at + 4 * r, from, 4);
    }
    std::memset(at, 0, (depth - whole) * count);
    for (std::size_t r = 0; whole < k && r < count; ++r) std::memcpy(at + 4 * r, rows + r * k + whole, k - whole);
  }
}

void range_vnni(const float* a, std::size_t n, float* low, float* high) {
  __m512 least[2], most[2];
  for (int v = 0; v < 2; ++v) least[v] = most[v] = _mm512_set1_ps(a[0]);
  __mmask16 without = 0;
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < 2; ++v) {
      const __m512 x = _mm512_loadu_ps(a + i + 16 * v);
      least[v] = _mm512_min_ps(least[v], x), most[v] = _mm512_max_ps(most[v], x);
      without |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    }
  }
  for (; i < n; i += 16) {
    const __mmask16 lanes = first_lanes(n - i);
    const __m512 x = _mm512_mask_loadu_ps(least[0], lanes, a + i);
    least[0] = _mm512_min_ps(least[0], x), most[0] = _mm512_max_ps(most[0], x);
    without |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  }
  if (without) return static_cast<void>(*low = *high = __builtin_nanf(""));
  *low = _mm512_reduce_min_ps(_mm512_min_ps(least[0], least[1]));
  *high = _mm512_reduce_max_ps(_mm512_max_ps(most[0], most[1]));
}

void quantize_rows_vnni(const RowPanels& panels, const float* a, std::size_t begin, std::size_t end,
                        const QuantizedRows& out) {
  by_row<ByRow>(panels, a, begin, end, out);
}

void quantize_rows_vnni(const TilePanels& panels, const float* a, std::size_t begin, std::size_t end,
                        const QuantizedRows& out) {
  by_row<ByRow>(panels, a, begin, end, out);
}

void exponentials_vnni(const RowPanels& panels, const float* a, std::size_t begin, std::size_t end,
                       const QuantizedRows& out) {
  by_row<ByExponential>(panels, a, begin, end, out);
}

void quantize_vnni(const RowPanels& panels, const float* a, std::size_t begin, std::size_t end, float scale,
                   std::int32_t zero_point, const QuantizedRows& out) {
  by_tensor(panels, panels.k, a, begin, end, ByTensor{scale, _mm512_set1_epi32(zero_point)}, zero_point, out);
}

void quantize_vnni(const TilePanels& panels, const float* a, std::size_t begin, std::size_t end, float scale,
                   std::int32_t zero_point, const QuantizedRows& out) {
  by_tensor(panels, panels.row, a, begin, end, ByTensor{scale, _mm512_set1_epi32(zero_point)}, zero_point, out);
}

}  // namespace modelflow::cpu
