// Vectors of 8-bit numbers, as wide as those of floats: narrowing, and the turning of 16 x 16 of them, for each
// instruction set (see vector.h).
#pragma once

#include "backends/cpu/vector/convert.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kBytes = 4 * kLanes;
typedef std::uint8_t Bytes __attribute__((vector_size(kBytes)));

MODELFLOW_INLINE Bytes load_all(const std::uint8_t* from) {
  Bytes x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
MODELFLOW_INLINE void store(std::uint8_t* to, Bytes x) { __builtin_memcpy(to, &x, sizeof x); }
MODELFLOW_INLINE std::uint8_t* bytes_of(Bytes& x) { return reinterpret_cast<std::uint8_t*>(&x); }

/// Numbers of 16 bits, and as many of 8 bits that become such.
constexpr std::size_t kHalves = 2 * kLanes;
typedef std::uint16_t Halves __attribute__((vector_size(2 * kHalves)));

/// n <= 16 bytes.
MODELFLOW_INLINE void copy_sixteen(std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
  if (n == 16) {
    __builtin_memcpy(to, from, 16);
    return;
  }
  std::size_t i = 0;
#pragma GCC unroll 4
  for (std::size_t step = 8; step > 0; step /= 2) {
    if (!(n & step)) continue;
    __builtin_memcpy(to + i, from + i, step);
    i += step;
  }
}

// nearest: the nearest integers, the even one of two; of what no integer is the smallest. narrowed: the numbers of four
// vectors in order, saturated, as store_bytes does. interleaved: of the first or of the last 8 bytes of every
// 16, those of a and b in turn.
#if defined(__AVX512F__)

MODELFLOW_INLINE Ints nearest(Floats x) { return reinterpret_cast<Ints>(_mm512_cvtps_epi32(x)); }
MODELFLOW_INLINE Halves load_widened(const std::uint8_t* from) {
  return reinterpret_cast<Halves>(_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}
MODELFLOW_INLINE Bytes narrowed(Ints a, Ints b, Ints c, Ints d) {
  const __m512i low = _mm512_packs_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
  const __m512i high = _mm512_packs_epi32(reinterpret_cast<__m512i>(c), reinterpret_cast<__m512i>(d));
  // Each lane of 128 bits holds four numbers of a, of b, of c and of d.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return reinterpret_cast<Bytes>(_mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
}
MODELFLOW_INLINE Bytes interleaved_first(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm512_unpacklo_epi8(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
MODELFLOW_INLINE Bytes interleaved_last(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm512_unpackhi_epi8(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
MODELFLOW_INLINE __m128i saturated(Ints x) {
  return _mm512_cvtusepi32_epi8(_mm512_max_epi32(reinterpret_cast<__m512i>(x), _mm512_setzero_si512()));
}
MODELFLOW_INLINE void store_bytes(std::uint8_t* to, Ints x, Whole) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), saturated(x));
}
MODELFLOW_INLINE void store_bytes(std::uint8_t* to, Ints x, Rest rest) {
  _mm_mask_storeu_epi8(to, rest.mask, saturated(x));
}

#else
#if defined(__AVX2__)

MODELFLOW_INLINE Ints nearest(Floats x) { return reinterpret_cast<Ints>(_mm256_cvtps_epi32(x)); }
MODELFLOW_INLINE Halves load_widened(const std::uint8_t* from) {
  return reinterpret_cast<Halves>(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
MODELFLOW_INLINE Bytes narrowed(Ints a, Ints b, Ints c, Ints d) {
  const __m256i low = _mm256_packs_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  const __m256i high = _mm256_packs_epi32(reinterpret_cast<__m256i>(c), reinterpret_cast<__m256i>(d));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return reinterpret_cast<Bytes>(_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
}
MODELFLOW_INLINE Bytes interleaved_first(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm256_unpacklo_epi8(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
MODELFLOW_INLINE Bytes interleaved_last(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm256_unpackhi_epi8(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}

#else

MODELFLOW_INLINE Ints nearest(Floats x) { return reinterpret_cast<Ints>(_mm_cvtps_epi32(x)); }
MODELFLOW_INLINE Halves load_widened(const std::uint8_t* from) {
  return reinterpret_cast<Halves>(
      _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)), _mm_setzero_si128()));
}
MODELFLOW_INLINE Bytes narrowed(Ints a, Ints b, Ints c, Ints d) {
  const __m128i low = _mm_packs_epi32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b));
  const __m128i high = _mm_packs_epi32(reinterpret_cast<__m128i>(c), reinterpret_cast<__m128i>(d));
  return reinterpret_cast<Bytes>(_mm_packus_epi16(low, high));
}
MODELFLOW_INLINE Bytes interleaved_first(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm_unpacklo_epi8(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
MODELFLOW_INLINE Bytes interleaved_last(Bytes a, Bytes b) {
  return reinterpret_cast<Bytes>(_mm_unpackhi_epi8(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}

#endif

MODELFLOW_INLINE void store_bytes(std::uint8_t* to, Ints x, Whole) {
  const Bytes bytes = narrowed(x, x, x, x);
  __builtin_memcpy(to, &bytes, kLanes);
}
MODELFLOW_INLINE void store_bytes(std::uint8_t* to, Ints x, Rest rest) {
  std::uint8_t room[kLanes];
  store_bytes(room, x, Whole{});
  for (std::size_t i = 0; i < rest.count; ++i) to[i] = room[i];
}

#endif

MODELFLOW_INLINE Floats as_floats(Ints x) { return __builtin_convertvector(x, Floats); }

/// x + zero, rounded half to even; what is too large for an integer is cut before it becomes the smallest one. NaN
/// becomes that, and so 0, as in ONNX Runtime's QuantizeLinear.
struct ToByte {
  std::int32_t zero;
  MODELFLOW_INLINE Ints operator()(Floats x) const { return nearest(min(all(1024.0f), x)) + zero; }
};

/// y[i] = number(i, part), saturated.
template <class Number>
MODELFLOW_INLINE void write_bytes(std::size_t n, std::uint8_t* y, Number number) {
  std::size_t i = 0;
  for (; i + kBytes <= n; i += kBytes)
    store(y + i, narrowed(number(i, Whole{}), number(i + kLanes, Whole{}), number(i + 2 * kLanes, Whole{}),
                          number(i + 3 * kLanes, Whole{})));
  vectors(n - i, [&](std::size_t at, auto part) { store_bytes(y + i + at, number(i + at, part), part); });
}

/// In every 16 bytes of the rows, byte j of row i becomes byte i of row j: each step rotates the bits of (row, byte)
/// by one.
MODELFLOW_INLINE void turn_sixteens(Bytes (&rows)[16]) {
#pragma GCC unroll 4
  for (int step = 0; step < 4; ++step) {
    Bytes next[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = interleaved_first(rows[i], rows[i + 8]);
      next[2 * i + 1] = interleaved_last(rows[i], rows[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) rows[i] = next[i];
  }
}

}  // namespace
}  // namespace modelflow::cpu
