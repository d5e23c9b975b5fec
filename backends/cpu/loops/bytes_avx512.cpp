// The loops over bytes, written for AVX-512.
#include "backends/cpu/loops/bytes_avx512.h"

#include "backends/cpu/loops/bytes_transpose_avx512.h"

namespace modelflow::cpu {
namespace {

void max_window(const ByteWindow& w, std::uint8_t* y) {
  for (std::size_t c = 0; c < w.channels; c += 64) {
    const __mmask64 mask = mask64(w.channels - c);
    __m512i best = _mm512_setzero_si512();
    for (std::size_t h = 0; h < w.high; ++h) {
      const std::uint8_t* x = w.x + h * w.line + c;
      for (std::size_t i = 0; i < w.wide; ++i, x += w.channels)
        best = _mm512_max_epu8(best, _mm512_maskz_loadu_epi8(mask, x));
    }
    _mm512_mask_storeu_epi8(y + c, mask, best);
  }
}

MODELFLOW_INLINE void add_words(__m512i words, std::size_t channels, std::uint32_t* sum) {
  const auto add = [&](__m256i half, std::size_t c) {
    if (channels <= c) return;
    const __mmask16 mask = first_lanes(channels - c);
    const __m512i old = _mm512_maskz_loadu_epi32(mask, sum + c);
    _mm512_mask_storeu_epi32(sum + c, mask, _mm512_add_epi32(old, _mm512_cvtepu16_epi32(half)));
  };
  add(_mm512_castsi512_si256(words), 0);
  add(_mm512_extracti64x4_epi64(words, 1), 16);
}

/// 32 * `vectors` channels, those behind `channels` left out; few enough rows for sums of 16 bits.
template <int vectors>
MODELFLOW_INLINE void add_block(const std::uint8_t* x, std::size_t rows, std::size_t step, std::size_t channels,
                                std::uint32_t* sum) {
  __m512i words[vectors];
  for (int v = 0; v < vectors; ++v) words[v] = _mm512_setzero_si512();
  const __mmask32 mask = mask32(channels - 32 * (vectors - 1));
  for (std::size_t r = 0; r < rows; ++r, x += step) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const __m256i bytes = v + 1 < vectors ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 32 * v))
                                            : _mm256_maskz_loadu_epi8(mask, x + 32 * v);
      words[v] = _mm512_add_epi16(words[v], _mm512_cvtepu8_epi16(bytes));
    }
  }
  for (int v = 0; v < vectors; ++v)
    add_words(words[v], channels - 32 * static_cast<std::size_t>(v), sum + 32 * static_cast<std::size_t>(v));
}

void add_rows(const std::uint8_t* x, std::size_t rows, std::size_t stride, std::size_t channels, std::uint32_t* sum) {
  constexpr std::size_t kRows = 256;  // times 255 still fits 16 bits
  for (std::size_t r = 0; r < rows; r += kRows) {
    const std::size_t count = rows - r < kRows ? rows - r : kRows;
    const std::uint8_t* from = x + r * stride;
    std::size_t c = 0;
    for (; c + 96 < channels; c += 128) add_block<4>(from + c, count, stride, channels - c, sum + c);
    for (; c < channels; c += 32) add_block<1>(from + c, count, stride, channels - c, sum + c);
  }
}

std::uint64_t sum(const std::uint8_t* x, std::size_t n) {
  __m512i total = _mm512_setzero_si512();
  for (std::size_t i = 0; i < n; i += 64)
    total =
        _mm512_add_epi64(total, _mm512_sad_epu8(_mm512_maskz_loadu_epi8(mask64(n - i), x + i), _mm512_setzero_si512()));
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(total));
}

struct OneFactor {
  __m512 factor;
  MODELFLOW_INLINE __m512 operator()(std::size_t) const { return factor; }
  MODELFLOW_INLINE __m512 operator()(std::size_t, __mmask16) const { return factor; }
};

struct Factors {
  const float* factor;
  MODELFLOW_INLINE __m512 operator()(std::size_t i) const { return _mm512_loadu_ps(factor + i); }
  MODELFLOW_INLINE __m512 operator()(std::size_t i, __mmask16 mask) const {
    return _mm512_maskz_loadu_ps(mask, factor + i);
  }
};

template <class Factor>
MODELFLOW_INLINE void rescale_row(const Rescale& r, const std::uint8_t* x, const Factor& factor, std::size_t n,
                                  std::uint8_t* y) {
  const __m512i x_zero = _mm512_set1_epi32(r.x_zero), y_zero = _mm512_set1_epi16(static_cast<short>(r.y_zero));
  const auto whole = [&](__m512i bytes, __m512 by) {
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(bytes, x_zero)), by);
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(1024), product));
  };
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const auto part = [&](std::size_t at) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i + at));
      return whole(_mm512_cvtepu8_epi32(bytes), factor(i + at));
    };
    _mm512_storeu_si512(y + i, packed(part(0), part(16), part(32), part(48), y_zero));
  }
  for (; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, x + i));
    const __m512i result = _mm512_add_epi32(whole(bytes, factor(i, mask)), _mm512_set1_epi32(r.y_zero));
    _mm_mask_storeu_epi8(y + i, mask, _mm512_cvtusepi32_epi8(_mm512_max_epi32(result, _mm512_setzero_si512())));
  }
}

void rescale_rows(const Rescale& r, const std::uint8_t* x, const float* factor, std::size_t rows, std::size_t channels,
                  std::uint8_t* y) {
  for (std::size_t row = 0; row < rows; ++row)
    rescale_row(r, x + row * channels, Factors{factor}, channels, y + row * channels);
}

void rescale(const Rescale& r, const std::uint8_t* x, float factor, std::size_t n, std::uint8_t* y) {
  rescale_row(r, x, OneFactor{_mm512_set1_ps(factor)}, n, y);
}

void quantize(const Quantization& q, const float* x, std::size_t n, std::uint8_t* y) {
  const Quantizer quantizer(q);
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(y + i, quantizer(x + i));
  if (i < n) _mm512_mask_storeu_epi8(y + i, mask64(n - i), quantizer(x + i, n - i));
}

void dequantize(const Quantization& q, const std::uint8_t* x, std::size_t n, float* y) {
  const Dequantizer dequantizer(q);
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    _mm512_mask_storeu_ps(y + i, mask, dequantizer(_mm_maskz_loadu_epi8(mask, x + i)));
  }
}

// 16 numbers of each operand at a time, 64 to a store; see bytes_loops.h for the arithmetic.
void add(const ByteSum& s, const std::uint8_t* a, const std::uint8_t* b, std::size_t n, std::uint8_t* y) {
  const float fa = s.a.scale / s.y.scale, fb = s.b.scale / s.y.scale;
  const __m512 factor_a = _mm512_set1_ps(fa), factor_b = _mm512_set1_ps(fb), most = _mm512_set1_ps(1024),
               least = _mm512_set1_ps(s.relu ? 0.0f : -1024.0f),
               rest = _mm512_set1_ps(-(static_cast<float>(s.a.zero) * fa + static_cast<float>(s.b.zero) * fb));
  const __m512i zero = _mm512_set1_epi16(static_cast<short>(s.y.zero));
  const auto part = [&](std::size_t i, std::size_t left) {
    const __mmask16 mask = first_lanes(left);
    const auto number = [&](const std::uint8_t* x) {
      return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, x + i)));
    };
    const __m512 x = _mm512_fmadd_ps(number(a), factor_a, _mm512_fmadd_ps(number(b), factor_b, rest));
    return _mm512_cvtps_epi32(_mm512_max_ps(_mm512_min_ps(x, most), least));
  };
  for (std::size_t i = 0; i < n; i += 64) {
    const std::size_t left = n - i;
    const auto behind = [&](std::size_t at) { return left > at ? part(i + at, left - at) : _mm512_setzero_si512(); };
    const __m512i result = packed(behind(0), behind(16), behind(32), behind(48), zero);
    _mm512_mask_storeu_epi8(y + i, mask64(left), result);
  }
}

}  // namespace

const ByteLoops byte_loops_avx512 = {max_window,
                                     add_rows,
                                     sum,
                                     rescale_rows,
                                     rescale,
                                     quantize,
                                     dequantize,
                                     quantize_last_avx512,
                                     dequantize_second_avx512,
                                     add};

}  // namespace modelflow::cpu
