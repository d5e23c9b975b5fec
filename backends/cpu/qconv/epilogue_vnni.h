// The epilogue of 8-bit convolutions: from sums of products to u8 results. For files named *_vnni.cpp only; everything
// has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/qconv/gates_vnni.h"
#include "backends/cpu/qconv/problem.h"
#include "backends/cpu/qconv/windows_vnni.h"
#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// sums + products of four unsigned and four signed bytes per lane. Written out, since GCC 12 copies the sums of its
/// intrinsic around and spills them, which costs half of the speed.
MODELFLOW_INLINE void multiply_add4(__m512i& sums, __m512i unsigned_bytes, __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(unsigned_bytes), "v"(signed_bytes));
}

/// What becomes of sums. Activations that are bounds (QEpilogue::bounded) become bounds of the u8 result, which costs
/// nothing. SiLU, GELU and HardSwish have their factors moved in front of them (Gates). All others give steps of y by
/// their own scale and shift.
struct QFinish {
  alignas(64) std::uint8_t low[64], high[64];  ///< of the result
  std::int16_t zero_point[32];                 ///< of the result
  bool bounded, gated;
  Gates gates;
  float added_step, added_0;  ///< a residual of r adds r * added_step + added_0
  ops::Residual residual;
  ActivationSpec activation;
};

QFinish finish_of(const QEpilogue& e) {
  QFinish f{};
  f.bounded = e.bounded();
  const QBounds bounds = bounds_of(e);
  std::memset(f.low, bounds.low, sizeof f.low);
  std::memset(f.high, bounds.high, sizeof f.high);
  for (std::int16_t& zero_point : f.zero_point) zero_point = static_cast<std::int16_t>(e.y.zero_point);
  const float to_steps = 1 / e.y.scale;
  f.activation = e.activation;
  f.activation.scale *= to_steps, f.activation.shift *= to_steps;
  f.gated = gates_of(f.activation, f.gates);
  f.residual = e.residual;
  f.added_step = e.added.scale * (f.bounded || e.residual == ops::Residual::after ? to_steps : f.gates.before);
  f.added_0 = -static_cast<float>(e.added.zero_point) * f.added_step;
  return f;
}

/// K vectors of sums times factor (one of N) to steps of y. `added`: the numbers of the residual, scaled. One operation
/// after the other on all vectors: the processor looks too few of them ahead to overlap whole chains.
template <bool Bounded, bool Added, int N, int K, class Act>
MODELFLOW_INLINE void steps_of(const QFinish& f, const __m512i (&sums)[K], const __m512 (&factor)[N],
                               const __m512 (&added)[K], Act act, __m512i (&steps)[K]) {
  __m512 v[K];
  const bool before = Added && (Bounded || f.residual == ops::Residual::before);
#pragma GCC unroll 4
  for (int i = 0; i < K; ++i) v[i] = _mm512_cvtepi32_ps(sums[i]);
#pragma GCC unroll 4
  for (int i = 0; i < K; ++i)
    v[i] = before ? _mm512_fmadd_ps(v[i], factor[i % N], added[i]) : _mm512_mul_ps(v[i], factor[i % N]);
  act_on(act, v);
#pragma GCC unroll 4
  for (int i = 0; i < K; ++i) steps[i] = _mm512_cvtps_epi32(Added && !before ? _mm512_add_ps(v[i], added[i]) : v[i]);
}

/// Calls `body` with Bounded, Added (as std::bool_constant) and the activation.
template <class Body>
MODELFLOW_INLINE void with_finish(const QFinish& f, bool added, Body body) {
  using Yes = std::true_type;
  using No = std::false_type;
  if (f.bounded) return added ? body(Yes{}, Yes{}, Identity{}) : body(Yes{}, No{}, Identity{});
  const auto unbounded = [&](auto act) { return added ? body(No{}, Yes{}, act) : body(No{}, No{}, act); };
  if (f.gated && f.activation.kind == Activation::hard_swish) return unbounded(HardSwishSteps{f.gates});
  if (f.gated) return unbounded(TableSteps{f.gates});
  with_activation(f.activation, unbounded);
}

/// N vectors of steps of y (zero point not yet added) to bounded bytes: lane l holds 4l .. 4l + 3 of each vector.
template <int N>
MODELFLOW_INLINE __m512i pack_bytes(const __m512i (&q)[N], const QFinish& f) {
  const __m512i zero = _mm512_load_si512(f.zero_point);
  __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[N > 1 ? 1 : 0]), zero), high = low;
  if constexpr (N > 2) high = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[N > 3 ? 3 : 2]), zero);
  const __m512i bytes = _mm512_max_epu8(_mm512_packus_epi16(low, high), _mm512_load_si512(f.low));
  return _mm512_min_epu8(bytes, _mm512_load_si512(f.high));
}

/// The first `pixels` of 4 / N pixels of N vectors each (one of three), vector after vector, into memory.
template <int N>
MODELFLOW_INLINE void store_pixels(__m512i bytes, const QTarget& t, std::uint8_t* y, int pixels) {
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  bytes = _mm512_permutexvar_epi32(order, bytes);
  if constexpr (N > 2) return _mm512_mask_storeu_epi8(y, t.mask, bytes);
  if constexpr (N == 2) {
    const auto mask = static_cast<__mmask32>(t.mask);
    _mm256_mask_storeu_epi8(y, mask, _mm512_castsi512_si256(bytes));
    if (pixels > 1) _mm256_mask_storeu_epi8(y + t.step, mask, _mm512_extracti64x4_epi64(bytes, 1));
  }
  if constexpr (N == 1) {
    const auto mask = static_cast<__mmask16>(t.mask);
    _mm_mask_storeu_epi8(y, mask, _mm512_castsi512_si128(bytes));
    if (pixels > 1) _mm_mask_storeu_epi8(y + t.step, mask, _mm512_extracti32x4_epi32(bytes, 1));
    if (pixels > 2) _mm_mask_storeu_epi8(y + 2 * t.step, mask, _mm512_extracti32x4_epi32(bytes, 2));
    if (pixels > 3) _mm_mask_storeu_epi8(y + 3 * t.step, mask, _mm512_extracti32x4_epi32(bytes, 3));
  }
}

/// Pixels of N vectors of sums to results.
template <int N, bool Bounded, bool Added, class Act>
MODELFLOW_INLINE void finish_rows(const QFinish& f, const std::int32_t* sums, const float* scale, const QTarget& t,
                                  int pixels, Act act) {
  constexpr int kAtOnce = N == 3 ? 1 : 4 / N, kVectors = kAtOnce * N;
  const __m512 step = _mm512_set1_ps(f.added_step), at_zero = _mm512_set1_ps(f.added_0);
  const __m512 before = _mm512_set1_ps(f.gates.before);
  __m512 factor[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) factor[j] = _mm512_mul_ps(_mm512_loadu_ps(scale + 16 * j), before);
  for (int r = 0; r < pixels; r += kAtOnce, sums += 16 * kVectors) {
    __m512i q[kVectors];
    __m512 added[kVectors] = {};
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const int j = i % N, pixel = r + i / N;
      if constexpr (Added) {
        const auto exist = static_cast<__mmask16>(j + 1 < N ? 0xffff : t.mask >> (16 * j));
        const __mmask16 mask = kAtOnce == 1 || pixel < pixels ? exist : 0;
        const __m128i bytes = _mm_maskz_loadu_epi8(mask, t.added + pixel * t.step + 16 * j);
        added[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)), step, at_zero);
      }
      q[i] = _mm512_load_si512(sums + 16 * i);
    }
    steps_of<Bounded, Added>(f, q, factor, added, act, q);
    store_pixels<N>(pack_bytes<kVectors>(q, f), t, t.y + r * t.step, pixels - r);
  }
}

/// The same for sums that are in registers, of R pixels, when the activation is a bound.
template <int R, int N, bool Added>
MODELFLOW_INLINE void finish_sums(const __m512i (&sums)[R][N], const QFinish& f, const float* scale, const QTarget& t) {
  constexpr int kAtOnce = N == 3 ? 1 : 4 / N, kVectors = kAtOnce * N;
#pragma GCC unroll 32
  for (int r = 0; r < R; r += kAtOnce) {
    // Else all constants are loaded before the first row, and the sums make room for them.
    asm volatile("" ::: "memory");
    __m512i q[kVectors];
    __m512 added[kVectors] = {}, factor[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) factor[j] = _mm512_loadu_ps(scale + 16 * j);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const int j = i % N, pixel = r + i / N < R ? r + i / N : R - 1;
      if constexpr (Added) {
        const auto mask = static_cast<__mmask16>(j + 1 < N ? 0xffff : t.mask >> (16 * j));
        const __m128i bytes = _mm_maskz_loadu_epi8(mask, t.added + pixel * t.step + 16 * j);
        added[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)), _mm512_set1_ps(f.added_step),
                                   _mm512_set1_ps(f.added_0));
      }
      q[i] = sums[pixel][j];
    }
    steps_of<true, Added>(f, q, factor, added, Identity{}, q);
    store_pixels<N>(pack_bytes<kVectors>(q, f), t, t.y + r * t.step, R - r);
  }
}

/// `sums` has room for a multiple of four vectors.
template <int N>
__attribute__((noinline)) void finish_pixels(const QFinish& f, const std::int32_t* sums, const float* scale,
                                             const QTarget& t, int pixels) {
  with_finish(f, t.added, [&](auto bounded, auto added, auto act) {
    finish_rows<N, decltype(bounded)::value, decltype(added)::value>(f, sums, scale, t, pixels, act);
  });
}

}  // namespace
}  // namespace modelflow::cpu
