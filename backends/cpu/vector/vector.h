// Vectors of floats, as wide as the registers that the including file is compiled for: 16 in files named *_avx512.cpp,
// *_vnni.cpp and *_amx.cpp, 8 in *_avx2.cpp, 4 elsewhere. Code over them is written once, in a header, and compiled for
// each instruction set (backends/cpu/loops). The types are the compiler's own: they have its operators, and intrinsics
// take them. Internal linkage on purpose: the linker must not mix what was compiled for different instruction sets.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#define MODELFLOW_INLINE inline __attribute__((always_inline))
/// All that the function calls becomes a part of it: bodies of loops that are passed on are never calls.
#define MODELFLOW_FLAT __attribute__((flatten))

namespace modelflow::cpu {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::int32_t Ints __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

constexpr float kNothing = -__builtin_inff();

MODELFLOW_INLINE Floats all(float x) { return x - Floats{}; }  // plus 0 would be computed
MODELFLOW_INLINE Ints bits(Floats x) { return reinterpret_cast<Ints>(x); }
MODELFLOW_INLINE Floats from_bits(Ints x) { return reinterpret_cast<Floats>(x); }

/// How much of a vector is meant: all of it, or the `count` < kLanes first numbers, where a row ends.
struct Whole {};
struct Rest;

MODELFLOW_INLINE Floats load(const float* from, Whole = {}, float = 0) {
  Floats x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
MODELFLOW_INLINE void store(float* to, Floats x, Whole = {}) { __builtin_memcpy(to, &x, sizeof x); }
/// The numbers of the part, and others behind them.
MODELFLOW_INLINE Floats only(Floats x, Whole, float = 0) { return x; }

#if defined(__AVX512F__)

/// The lanes of a vector that holds the last `n` < 16 floats.
MODELFLOW_INLINE __mmask16 tail_mask(std::size_t n) { return static_cast<__mmask16>((1u << n) - 1); }
/// Those of a vector that holds the first of `n` floats: all 16 where there are as many.
MODELFLOW_INLINE __mmask16 first_lanes(std::size_t n) { return n < 16 ? tail_mask(n) : static_cast<__mmask16>(0xffff); }

struct Rest {
  __mmask16 mask;
  MODELFLOW_INLINE explicit Rest(std::size_t count) : mask(tail_mask(count)) {}
};
MODELFLOW_INLINE Floats only(Floats x, Rest rest, float other = 0) {
  return _mm512_mask_mov_ps(all(other), rest.mask, x);
}
MODELFLOW_INLINE Floats load(const float* from, Rest rest, float other = 0) {
  return _mm512_mask_loadu_ps(all(other), rest.mask, from);
}
MODELFLOW_INLINE void store(float* to, Floats x, Rest rest) { _mm512_mask_storeu_ps(to, rest.mask, x); }

// max and min give their second operand where one of the two is no number.
MODELFLOW_INLINE Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
MODELFLOW_INLINE Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
MODELFLOW_INLINE Floats sqrt(Floats x) { return _mm512_sqrt_ps(x); }

#elif defined(__AVX2__)

struct Rest {
  std::size_t count;
  Ints mask;
  MODELFLOW_INLINE explicit Rest(std::size_t n)
      : count(n), mask(Ints{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<std::int32_t>(n)) {}
};
MODELFLOW_INLINE Floats only(Floats x, Rest rest, float other = 0) { return rest.mask ? x : all(other); }
MODELFLOW_INLINE Floats load(const float* from, Rest rest, float other = 0) {
  const Floats x = _mm256_maskload_ps(from, reinterpret_cast<__m256i>(rest.mask));  // 0 behind the end
  return __builtin_constant_p(other) && other == 0 ? x : only(x, rest, other);
}
MODELFLOW_INLINE void store(float* to, Floats x, Rest rest) {
  _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(rest.mask), x);
}

MODELFLOW_INLINE Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
MODELFLOW_INLINE Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
MODELFLOW_INLINE Floats sqrt(Floats x) { return _mm256_sqrt_ps(x); }

#else

struct Rest {
  std::size_t count;
  MODELFLOW_INLINE explicit Rest(std::size_t n) : count(n) {}
};
MODELFLOW_INLINE Floats only(Floats x, Rest rest, float other = 0) {
  return Ints{0, 1, 2, 3} < static_cast<std::int32_t>(rest.count) ? x : all(other);
}
MODELFLOW_INLINE Floats load(const float* from, Rest rest, float other = 0) {
  float all_four[kLanes] = {other, other, other, other};
  for (std::size_t i = 0; i < rest.count; ++i) all_four[i] = from[i];
  return load(all_four);
}
MODELFLOW_INLINE void store(float* to, Floats x, Rest rest) {
  for (std::size_t i = 0; i < rest.count; ++i) to[i] = x[i];
}

MODELFLOW_INLINE Floats max(Floats a, Floats b) { return _mm_max_ps(a, b); }
MODELFLOW_INLINE Floats min(Floats a, Floats b) { return _mm_min_ps(a, b); }
MODELFLOW_INLINE Floats sqrt(Floats x) { return _mm_sqrt_ps(x); }

#endif

/// NaN where one of the two is no number.
MODELFLOW_INLINE Floats maximum(Floats a, Floats b) { return a != a ? a : max(a, b); }
MODELFLOW_INLINE Floats minimum(Floats a, Floats b) { return a != a ? a : min(a, b); }

MODELFLOW_INLINE Floats abs(Floats x) { return from_bits(bits(x) & 0x7fffffff); }
/// A number of this size with the sign of the other.
MODELFLOW_INLINE Floats with_sign(Floats size, Floats sign) {
  return from_bits(bits(size) | (bits(sign) & static_cast<std::int32_t>(0x80000000)));
}

template <std::size_t by, std::size_t... lane>
MODELFLOW_INLINE Floats swapped(Floats x, std::index_sequence<lane...>) {
  return __builtin_shufflevector(x, x, (lane ^ by)...);
}
/// All numbers joined by f: halves, then quarters.
template <std::size_t width = kLanes / 2, class F>
MODELFLOW_INLINE float joined(Floats x, F f) {
  if constexpr (width == 0)
    return x[0];
  else
    return joined<width / 2>(f(x, swapped<width>(x, std::make_index_sequence<kLanes>())), f);
}
MODELFLOW_INLINE float sum_of(Floats x) {
  return joined(x, [](Floats a, Floats b) { return a + b; });
}
MODELFLOW_INLINE float largest_of(Floats x) {
  return joined(x, [](Floats a, Floats b) { return max(a, b); });
}

/// Whether all lanes of a comparison are true.
MODELFLOW_INLINE bool all_of(Ints true_or_false) {
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(true_or_false)) == 0xffff;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(true_or_false)) == 0xff;
#else
  return _mm_movemask_ps(reinterpret_cast<__m128>(true_or_false)) == 0xf;
#endif
}

/// A product that is rounded for itself, not together with the sum behind it.
MODELFLOW_INLINE Floats rounded(Floats x) {
  asm("" : "+v"(x));
  return x;
}

/// x[i], lane by lane.
MODELFLOW_INLINE Floats picked(Floats x, Ints i) {
#if defined(__AVX512F__)
  return _mm512_permutexvar_ps(reinterpret_cast<__m512i>(i), x);
#elif defined(__AVX2__)
  return _mm256_permutevar8x32_ps(x, reinterpret_cast<__m256i>(i));
#else
  Floats y = {};
  for (std::size_t lane = 0; lane < kLanes; ++lane) y[lane] = x[i[lane] % 4];
  return y;
#endif
}

/// Runs body(i, part) on the vectors of n floats; what is left behind the last whole one is a Rest.
template <class Body>
MODELFLOW_INLINE void vectors(std::size_t n, Body body) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Whole{});
  if (i < n) body(i, Rest(n - i));
}

/// The same with body(i, part, v), v < 4: four vectors that follow each other have different v, because each may add
/// to a sum of its own, and an addition takes four cycles.
template <class Body>
MODELFLOW_INLINE void vectors_by_four(std::size_t n, Body body) {
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < 4; ++v) body(i + v * kLanes, Whole{}, v);
  }
  for (; i + kLanes <= n; i += kLanes) body(i, Whole{}, std::size_t{0});
  if (i < n) body(i, Rest(n - i), std::size_t{1});
}

}  // namespace
}  // namespace modelflow::cpu
