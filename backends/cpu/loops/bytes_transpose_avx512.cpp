// Quantization of images with a transposition: planes of floats become pixels of bytes, or the other way round, 16
// channels of 64 pixels at a time in registers. Why intrinsics: through memory, as in bytes_loops.h, it takes 1.1
// to 1.9 times as long for 24 to 256 channels and 3.7 times for the three of an image (Sapphire Rapids).
#include "backends/cpu/loops/bytes_transpose_avx512.h"

#include "backends/cpu/vector/bytes.h"
#include "backends/cpu/vector/steps.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kChannels = 16, kPixels = 64;

/// 64 floats to bytes.
struct Quantizer {
  Steps steps;
  ToByte byte;

  explicit Quantizer(const Quantization& q) : steps(q.scale), byte{q.zero} {}

  template <class Number>
  MODELFLOW_INLINE Bytes bytes_of(Number number) const {
    Floats of[4];
    steps.write(of, number);
    return narrowed(byte(of[0]), byte(of[1]), byte(of[2]), byte(of[3]));
  }
  MODELFLOW_INLINE Bytes operator()(const float* x) const {
    return bytes_of([&](int v) { return load(x + 16 * v); });
  }
  /// Reads the first n < 64.
  MODELFLOW_INLINE Bytes operator()(const float* x, std::size_t n) const {
    return bytes_of([&](int v) {
      const std::size_t i = 16 * static_cast<std::size_t>(v);
      return n > i ? _mm512_maskz_loadu_ps(first_lanes(n - i), x + i) : Floats{};
    });
  }
};

/// 16 bytes to floats.
struct Dequantizer {
  __m512 scale;
  __m512i zero;

  explicit Dequantizer(const Quantization& q) : scale(_mm512_set1_ps(q.scale)), zero(_mm512_set1_epi32(q.zero)) {}

  MODELFLOW_INLINE __m512 operator()(__m128i x) const {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_cvtepu8_epi32(x), zero)), scale);
  }
  /// The first n <= 64 of them to y.
  MODELFLOW_INLINE void operator()(__m512i x, std::size_t n, float* y) const {
    const auto store = [&](__m128i part, std::size_t i) {
      if (n >= i + 16)
        _mm512_storeu_ps(y + i, (*this)(part));
      else if (n > i)
        _mm512_mask_storeu_ps(y + i, first_lanes(n - i), (*this)(part));
    };
    store(_mm512_castsi512_si128(x), 0);
    store(_mm512_extracti32x4_epi32(x, 1), 16);
    store(_mm512_extracti32x4_epi32(x, 2), 32);
    store(_mm512_extracti32x4_epi32(x, 3), 48);
  }
};

/// Lane `lane` of row `row`: the channels of pixel 16 * lane + row.
template <int lane>
MODELFLOW_INLINE void store_pixels(const Bytes (&rows)[16], std::size_t pixels, std::size_t step, __mmask16 mask,
                                   std::uint8_t* y) {
#pragma GCC unroll 16
  for (std::size_t row = 0; row < 16; ++row)
    if (16 * lane + row < pixels)
      _mm_mask_storeu_epi8(y + (16 * lane + row) * step, mask,
                           _mm512_extracti32x4_epi32(reinterpret_cast<__m512i>(rows[row]), lane));
}

template <int lane>
MODELFLOW_INLINE void load_pixels(Bytes (&rows)[16], std::size_t pixels, std::size_t step, __mmask16 mask,
                                  const std::uint8_t* x) {
#pragma GCC unroll 16
  for (std::size_t row = 0; row < 16; ++row)
    if (16 * lane + row < pixels)
      rows[row] = reinterpret_cast<Bytes>(_mm512_inserti32x4(
          reinterpret_cast<__m512i>(rows[row]), _mm_maskz_loadu_epi8(mask, x + (16 * lane + row) * step), lane));
}

}  // namespace

void quantize_last_avx512(const Quantization& q, const Planes& p, const float* x, std::uint8_t* y) {
  const Quantizer quantizer(q);
  for (std::size_t at = p.begin; at < p.end; at += kPixels) {
    const std::size_t pixels = p.end - at < kPixels ? p.end - at : kPixels;
    for (std::size_t c = 0; c < p.channels; c += kChannels) {
      const std::size_t channels = p.channels - c;
      Bytes rows[16] = {};
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i) {
        const float* from = x + (c + i) * p.pixels + at;
        if (i < channels) rows[i] = pixels == kPixels ? quantizer(from) : quantizer(from, pixels);
      }
      turn_sixteens(rows);
      std::uint8_t* to = y + at * p.channels + c;
      const __mmask16 mask = first_lanes(channels);
      store_pixels<0>(rows, pixels, p.channels, mask, to);
      store_pixels<1>(rows, pixels, p.channels, mask, to);
      store_pixels<2>(rows, pixels, p.channels, mask, to);
      store_pixels<3>(rows, pixels, p.channels, mask, to);
    }
  }
}

void dequantize_second_avx512(const Quantization& q, const Planes& p, const std::uint8_t* x, float* y) {
  const Dequantizer dequantizer(q);
  for (std::size_t at = p.begin; at < p.end; at += kPixels) {
    const std::size_t pixels = p.end - at < kPixels ? p.end - at : kPixels;
    for (std::size_t c = 0; c < p.channels; c += kChannels) {
      const std::size_t channels = p.channels - c;
      Bytes rows[16] = {};
      const std::uint8_t* from = x + at * p.channels + c;
      const __mmask16 mask = first_lanes(channels);
      load_pixels<0>(rows, pixels, p.channels, mask, from);
      load_pixels<1>(rows, pixels, p.channels, mask, from);
      load_pixels<2>(rows, pixels, p.channels, mask, from);
      load_pixels<3>(rows, pixels, p.channels, mask, from);
      turn_sixteens(rows);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i)
        if (i < channels) dequantizer(reinterpret_cast<__m512i>(rows[i]), pixels, y + (c + i) * p.pixels + at);
    }
  }
}

}  // namespace modelflow::cpu
