// Loading and storing vectors of numbers that lie in memory as 8-bit integers or as bfloat16, for each instruction set
// (see vector.h).
#pragma once

#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

#if defined(__AVX512F__)

MODELFLOW_INLINE Ints load_bytes(const std::uint8_t* from, Whole = {}) {
  return reinterpret_cast<Ints>(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
MODELFLOW_INLINE Ints load_bytes(const std::int8_t* from, Whole = {}) {
  return reinterpret_cast<Ints>(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
MODELFLOW_INLINE Ints load_bytes(const std::uint8_t* from, Rest rest) {
  return reinterpret_cast<Ints>(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(rest.mask, from)));
}

/// bfloat16 is the upper half of a float.
MODELFLOW_INLINE Ints load_halves(const std::uint16_t* from, Whole = {}) {
  return reinterpret_cast<Ints>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}
MODELFLOW_INLINE Ints load_halves(const std::uint16_t* from, Rest rest) {
  return reinterpret_cast<Ints>(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(rest.mask, from)));
}
/// The lower halves of numbers from -2^15 to 2^15 - 1.
MODELFLOW_INLINE void store_halves(std::uint16_t* to, Ints x, Whole = {}) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(x)));
}
MODELFLOW_INLINE void store_halves(std::uint16_t* to, Ints x, Rest rest) {
  _mm256_mask_storeu_epi16(to, rest.mask, _mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(x)));
}

#else

/// The numbers of a Rest, and zeros behind them.
template <class T>
struct Padded {
  T numbers[kLanes] = {};
  MODELFLOW_INLINE Padded(const T* from, Rest rest) {
    for (std::size_t i = 0; i < rest.count; ++i) numbers[i] = from[i];
  }
};

#if defined(__AVX2__)

MODELFLOW_INLINE Ints load_bytes(const std::uint8_t* from, Whole = {}) {
  return reinterpret_cast<Ints>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
MODELFLOW_INLINE Ints load_bytes(const std::int8_t* from, Whole = {}) {
  return reinterpret_cast<Ints>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
MODELFLOW_INLINE Ints load_halves(const std::uint16_t* from, Whole = {}) {
  return reinterpret_cast<Ints>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
MODELFLOW_INLINE void store_halves(std::uint16_t* to, Ints x, Whole = {}) {
  const __m256i numbers = reinterpret_cast<__m256i>(x);
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
}

#else

MODELFLOW_INLINE __m128i four_bytes(const void* from) {
  int bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return _mm_cvtsi32_si128(bytes);
}
MODELFLOW_INLINE Ints load_bytes(const std::uint8_t* from, Whole = {}) {
  const __m128i none = _mm_setzero_si128();
  return reinterpret_cast<Ints>(_mm_unpacklo_epi16(_mm_unpacklo_epi8(four_bytes(from), none), none));
}
MODELFLOW_INLINE Ints load_bytes(const std::int8_t* from, Whole = {}) {  // four times each, then the uppermost
  const __m128i twice = _mm_unpacklo_epi8(four_bytes(from), four_bytes(from));
  return reinterpret_cast<Ints>(_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24));
}
MODELFLOW_INLINE Ints load_halves(const std::uint16_t* from, Whole = {}) {
  const __m128i halves = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Ints>(_mm_unpacklo_epi16(halves, _mm_setzero_si128()));
}
MODELFLOW_INLINE void store_halves(std::uint16_t* to, Ints x, Whole = {}) {
  const __m128i numbers = reinterpret_cast<__m128i>(x);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi32(numbers, numbers));
}

#endif

MODELFLOW_INLINE Ints load_bytes(const std::uint8_t* from, Rest rest) { return load_bytes(Padded(from, rest).numbers); }
MODELFLOW_INLINE Ints load_halves(const std::uint16_t* from, Rest rest) {
  return load_halves(Padded(from, rest).numbers);
}
MODELFLOW_INLINE void store_halves(std::uint16_t* to, Ints x, Rest rest) {
  std::uint16_t room[kLanes];
  store_halves(room, x);
  for (std::size_t i = 0; i < rest.count; ++i) to[i] = room[i];
}

#endif

MODELFLOW_INLINE Floats load(const std::int8_t* from) { return __builtin_convertvector(load_bytes(from), Floats); }

template <class Part>
MODELFLOW_INLINE Floats load(const std::uint16_t* from, Part part) {
  return from_bits(load_halves(from, part) << 16);
}

/// Rounded to the nearest bfloat16, to even where two are as near; NaN stays one.
template <class Part>
MODELFLOW_INLINE void store(std::uint16_t* to, Floats x, Part part) {
  typedef std::uint32_t Words __attribute__((vector_size(sizeof(Ints))));
  const Words given = reinterpret_cast<Words>(x);
  const Ints rounded = reinterpret_cast<Ints>(given + 0x7fff + (given >> 16 & 1)), quiet = bits(x) | 0x400000;
  store_halves(to, (x != x ? quiet : rounded) >> 16, part);
}

}  // namespace
}  // namespace modelflow::cpu
