// Quantization of images with a transposition: planes of floats become pixels of bytes, or the other way round, 16
// channels of 64 pixels at a time in registers.
#include "backends/cpu/loops/bytes_transpose_avx512.h"

#include "backends/cpu/loops/bytes_avx512.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kChannels = 16, kPixels = 64;

/// In every lane of 128 bits, byte j of row i becomes byte i of row j: each step rotates the bits of (row, byte) by
/// one.
MODELFLOW_INLINE void transpose(__m512i (&rows)[16]) {
#pragma GCC unroll 4
  for (int step = 0; step < 4; ++step) {
    __m512i next[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = _mm512_unpacklo_epi8(rows[i], rows[i + 8]);
      next[2 * i + 1] = _mm512_unpackhi_epi8(rows[i], rows[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) rows[i] = next[i];
  }
}

/// Lane `lane` of row `row`: the channels of pixel 16 * lane + row.
template <int lane>
MODELFLOW_INLINE void store_pixels(const __m512i (&rows)[16], std::size_t pixels, std::size_t step, __mmask16 mask,
                                   std::uint8_t* y) {
#pragma GCC unroll 16
  for (std::size_t row = 0; row < 16; ++row)
    if (16 * lane + row < pixels)
      _mm_mask_storeu_epi8(y + (16 * lane + row) * step, mask, _mm512_extracti32x4_epi32(rows[row], lane));
}

template <int lane>
MODELFLOW_INLINE void load_pixels(__m512i (&rows)[16], std::size_t pixels, std::size_t step, __mmask16 mask,
                                  const std::uint8_t* x) {
#pragma GCC unroll 16
  for (std::size_t row = 0; row < 16; ++row)
    if (16 * lane + row < pixels)
      rows[row] = _mm512_inserti32x4(rows[row], _mm_maskz_loadu_epi8(mask, x + (16 * lane + row) * step), lane);
}

}  // namespace

void quantize_last_avx512(const Quantization& q, const Planes& p, const float* x, std::uint8_t* y) {
  const Quantizer quantizer(q);
  for (std::size_t at = p.begin; at < p.end; at += kPixels) {
    const std::size_t pixels = p.end - at < kPixels ? p.end - at : kPixels;
    for (std::size_t c = 0; c < p.channels; c += kChannels) {
      const std::size_t channels = p.channels - c;
      __m512i rows[16];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i) {
        const float* from = x + (c + i) * p.pixels + at;
        rows[i] = i >= channels       ? _mm512_setzero_si512()
                  : pixels == kPixels ? quantizer(from)
                                      : quantizer(from, pixels);
      }
      transpose(rows);
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
      __m512i rows[16];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i) rows[i] = _mm512_setzero_si512();
      const std::uint8_t* from = x + at * p.channels + c;
      const __mmask16 mask = first_lanes(channels);
      load_pixels<0>(rows, pixels, p.channels, mask, from);
      load_pixels<1>(rows, pixels, p.channels, mask, from);
      load_pixels<2>(rows, pixels, p.channels, mask, from);
      load_pixels<3>(rows, pixels, p.channels, mask, from);
      transpose(rows);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 16; ++i)
        if (i < channels) dequantizer(rows[i], pixels, y + (c + i) * p.pixels + at);
    }
  }
}

}  // namespace modelflow::cpu
