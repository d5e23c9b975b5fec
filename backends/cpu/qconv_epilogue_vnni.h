#pragma once

// From sums of 8-bit products to u8 results. For files named *_vnni.cpp only; everything has internal linkage.

#include <cstddef>
#include <cstdint>

#include "backends/cpu/activation_avx512.h"
#include "backends/cpu/qconv_problem.h"

namespace modelflow::cpu {
namespace {

/// sums + products of four unsigned and four signed bytes per lane. Written out, since GCC 12 copies the sums of its
/// intrinsic around and spills them, which costs half of the speed.
MODELFLOW_INLINE void multiply_add4(__m512i& sums, __m512i unsigned_bytes, __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(unsigned_bytes), "v"(signed_bytes));
}

/// What becomes of sums. Activations that are bounds become bounds of the u8 result, which costs nothing.
struct QFinish {
  const QEpilogue* epilogue;
  bool bounds;
  std::uint8_t low, high;     ///< of the result
  float to_steps;             ///< from real numbers to steps of y
  float added_step, added_0;  ///< a residual of r is r * added_step + added_0 in real numbers
};

MODELFLOW_INLINE std::uint8_t bound(const ops::Quantization& y, float value) {
  const float q = __builtin_nearbyintf(value / y.scale) + static_cast<float>(y.zero_point);
  return static_cast<std::uint8_t>(q > 0 ? q < 255 ? q : 255 : 0);
}

QFinish finish_of(const QEpilogue& e) {
  QFinish f{&e, false, 0, 255, 1 / e.y.scale, e.added.scale, -static_cast<float>(e.added.zero_point) * e.added.scale};
  const bool plain = !e.activation.affine() && e.residual != ops::Residual::after;
  f.bounds = e.activation.kind == Activation::none || (plain && e.activation.kind == Activation::relu) ||
             (plain && e.activation.kind == Activation::clip);
  if (f.bounds && e.activation.kind != Activation::none)
    f.low = bound(e.y, e.activation.kind == Activation::relu ? 0 : e.activation.alpha);
  if (f.bounds && e.activation.kind == Activation::clip) f.high = bound(e.y, e.activation.beta);
  return f;
}

/// N vectors of steps of y (zero point not yet added) to bounded bytes: lane l holds 4l .. 4l + 3 of each vector.
template <int N>
MODELFLOW_INLINE __m512i pack_bytes(const __m512i (&q)[N], const QFinish& f) {
  const __m512i zero = _mm512_set1_epi16(static_cast<short>(f.epilogue->y.zero_point));
  __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[N > 1 ? 1 : 0]), zero), high = low;
  if constexpr (N > 2) high = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[N > 3 ? 3 : 2]), zero);
  const __m512i bytes = _mm512_max_epu8(_mm512_packus_epi16(low, high), _mm512_set1_epi8(static_cast<char>(f.low)));
  return _mm512_min_epu8(bytes, _mm512_set1_epi8(static_cast<char>(f.high)));
}

/// The same, vector after vector, into memory.
template <int N>
MODELFLOW_INLINE void store_bytes(const __m512i (&q)[N], const QFinish& f, std::uint8_t* y, std::uint64_t mask) {
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i bytes = _mm512_permutexvar_epi32(order, pack_bytes<N>(q, f));
  if constexpr (N == 1) {
    _mm_mask_storeu_epi8(y, static_cast<__mmask16>(mask), _mm512_castsi512_si128(bytes));
  } else if constexpr (N == 2) {
    _mm256_mask_storeu_epi8(y, static_cast<__mmask32>(mask), _mm512_castsi512_si256(bytes));
  } else {
    _mm512_mask_storeu_epi8(y, mask, bytes);
  }
}

/// Where the results of a tile go: pixels `step` bytes apart.
struct QTarget {
  std::uint8_t* y;
  const std::uint8_t* added;  ///< the residual, steps as y
  std::ptrdiff_t step;
  std::uint64_t mask;  ///< filters of the tile that exist
};

/// Rows of N vectors of sums to results. `Bounded`: the activation is in the bounds of `f`, the residual before it.
template <int N, bool Bounded, bool Added, class Act>
MODELFLOW_INLINE void finish_rows(const QFinish& f, const std::int32_t* sums, const float* scale, const QTarget& t,
                                  int rows, Act act) {
  const __m512 to_steps = _mm512_set1_ps(f.to_steps), most = _mm512_set1_ps(1e9f);
  const float unit = Bounded ? f.to_steps : 1;
  const __m512 step = _mm512_set1_ps(f.added_step * unit), at_zero = _mm512_set1_ps(f.added_0 * unit);
  const bool before = f.epilogue->residual == ops::Residual::before;
  __m512 factor[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) factor[j] = _mm512_mul_ps(_mm512_loadu_ps(scale + 16 * j), _mm512_set1_ps(unit));
  for (int r = 0; r < rows; ++r) {
    __m512i q[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      __m512 v = _mm512_cvtepi32_ps(_mm512_load_si512(sums + (r * N + j) * 16)), added = at_zero;
      if constexpr (Added) {
        const auto mask = static_cast<__mmask16>(j + 1 < N ? 0xffff : t.mask >> (16 * j));
        const __m128i bytes = _mm_maskz_loadu_epi8(mask, t.added + r * t.step + 16 * j);
        added = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)), step, at_zero);
      }
      if constexpr (Bounded) {
        v = Added ? _mm512_fmadd_ps(v, factor[j], added) : _mm512_mul_ps(v, factor[j]);
      } else {
        v = _mm512_mul_ps(v, factor[j]);
        if (Added && before) v = _mm512_add_ps(v, added);
        v = act(v);
        if (Added && !before) v = _mm512_add_ps(v, added);
        v = _mm512_min_ps(_mm512_mul_ps(v, to_steps), most);
      }
      q[j] = _mm512_cvtps_epi32(v);
    }
    store_bytes<N>(q, f, t.y + r * t.step, t.mask);
  }
}

/// Sums take the way through memory, since they and all that this needs do not fit the registers, and one loop for all
/// sizes of tiles is enough.
template <int N>
__attribute__((noinline)) void finish_tile(const QFinish& f, const std::int32_t* sums, const float* scale,
                                           const QTarget& t, int rows) {
  if (f.bounds && !t.added) return finish_rows<N, true, false>(f, sums, scale, t, rows, Identity{});
  if (f.bounds) return finish_rows<N, true, true>(f, sums, scale, t, rows, Identity{});
  with_activation(f.epilogue->activation, [&](auto act) {
    if (t.added) return finish_rows<N, false, true>(f, sums, scale, t, rows, act);
    finish_rows<N, false, false>(f, sums, scale, t, rows, act);
  });
}

}  // namespace
}  // namespace modelflow::cpu
