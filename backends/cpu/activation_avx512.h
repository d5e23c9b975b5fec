#pragma once

// Activations on 16 floats. For files named *_avx512.cpp only: everything here has internal linkage, so that no copy
// compiled with AVX-512 can be chosen by the linker for code that runs on older machines.

#include <immintrin.h>

#include "backends/cpu/activation.h"

namespace modelflow::cpu {
namespace {

#define MODELFLOW_INLINE inline __attribute__((always_inline))

// max_ps and min_ps give their second operand where one of the two is no number: x stands there, so that NaN stays NaN.

/// exp(x) to about 1 ulp; arguments below -87 give exp(-87), above 88 give exp(88).
MODELFLOW_INLINE __m512 exp512(__m512 x) {
  x = _mm512_min_ps(_mm512_set1_ps(88.0f), _mm512_max_ps(_mm512_set1_ps(-87.0f), x));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
  p = _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, _mm512_add_ps(r, _mm512_set1_ps(1.0f)));
  return _mm512_scalef_ps(p, n);
}

/// 1 / d for d in the normal range: the 14-bit estimate and one Newton step.
MODELFLOW_INLINE __m512 reciprocal512(__m512 d) {
  const __m512 y = _mm512_rcp14_ps(d);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(d, y, _mm512_set1_ps(1.0f)), y, y);
}

/// The lanes where exp(x) is more than a number below the normal range; NaN counts.
MODELFLOW_INLINE __mmask16 above_nothing(__m512 x) {
  return _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
}

/// 0 itself far below 0: -inf times the gate of SiLU is NaN, and the lowest number times it nothing.
MODELFLOW_INLINE __m512 sigmoid512(__m512 x) {
  const __m512 e = exp512(_mm512_sub_ps(_mm512_setzero_ps(), x));
  return _mm512_maskz_mov_ps(above_nothing(x), reciprocal512(_mm512_add_ps(e, _mm512_set1_ps(1.0f))));
}

/// tanh: a polynomial near 0 (where 1 - 2/(e^2x + 1) would cancel), that formula elsewhere.
MODELFLOW_INLINE __m512 tanh512(__m512 x) {
  const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
  const __m512 a = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x);
  const __m512 z = _mm512_mul_ps(x, x);
  __m512 p = _mm512_set1_ps(-5.70498872745e-3f);
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(2.06390887954e-2f));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(-5.37397155531e-2f));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(1.33314422036e-1f));
  p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(-3.33332819422e-1f));
  const __m512 small = _mm512_fmadd_ps(_mm512_mul_ps(p, z), x, x);
  const __m512 e = exp512(_mm512_add_ps(a, a));
  const __m512 r = reciprocal512(_mm512_add_ps(e, _mm512_set1_ps(1.0f)));
  const __m512 large = _mm512_or_ps(_mm512_fnmadd_ps(_mm512_set1_ps(2.0f), r, _mm512_set1_ps(1.0f)), sign);
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, _mm512_set1_ps(0.625f), _CMP_LT_OQ), large, small);
}

/// Chebyshev fits of erf on [i/4, (i+1)/4), i < 16, one row per power of (x - i/4): looked up with one permute each.
/// Largest error 6.3e-8 absolute, 1.8e-7 relative (against double over 2 million points).
alignas(64) constexpr float kErf[6][16] = {
    {0.0f, 0.276326388f, 0.520499885f, 0.711155653f, 0.842700779f, 0.92290014f, 0.966105163f, 0.986671686f,
     0.995322287f, 0.998537302f, 0.999593019f, 0.999899387f, 0.999977887f, 0.999995708f, 0.999999285f, 0.999999881f},
    {1.12837911f, 1.06001246f, 0.87878114f, 0.642930686f, 0.415107995f, 0.236521885f, 0.118930802f, 0.052775152f,
     0.0206669308f, 0.00714221271f, 0.00217820518f, 0.000586236361f, 0.000139236596f, 2.91836259e-05f, 5.39794974e-06f,
     8.81090841e-07f},
    {6.56488146e-06f, -0.264925063f, -0.439322948f, -0.482178122f, -0.415130168f, -0.295686871f, -0.178419635f,
     -0.0923638344f, -0.0413314998f, -0.0160652492f, -0.00544198742f, -0.00161032774f, -0.000416976662f,
     -9.46066211e-05f, -1.88272679e-05f, -3.28897249e-06f},
    {-0.37632373f, -0.310499728f, -0.147645861f, 0.0264199451f, 0.13874203f, 0.168141395f, 0.139172688f, 0.0902936757f,
     0.0481836796f, 0.0216398221f, 0.00828569103f, 0.00272664661f, 0.000775364926f, 0.000191260566f, 4.10405992e-05f,
     7.67723486e-06f},
    {0.00197016634f, 0.137084961f, 0.192390591f, 0.153846025f, 0.0664981231f, -0.0108305775f, -0.0479417332f,
     -0.0492430702f, -0.0341805592f, -0.0184313077f, -0.00811469741f, -0.00298835547f, -0.000933386327f,
     -0.000249455305f, -5.73909128e-05f, -1.14154718e-05f},
    {0.106054604f, 0.045326151f, -0.0270350482f, -0.0667091832f, -0.061061196f, -0.0306439158f, -0.002303252f,
     0.011328022f, 0.0124442121f, 0.00836057868f, 0.0042364141f, 0.00172770733f, 0.000584262016f, 0.000166579775f,
     4.04595994e-05f, 8.43043017e-06f}};

MODELFLOW_INLINE __m512 erf512(__m512 x) {
  const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
  const __m512 a = _mm512_min_ps(_mm512_set1_ps(4.0f), _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x));
  const __m512i i =
      _mm512_min_epi32(_mm512_cvttps_epi32(_mm512_mul_ps(a, _mm512_set1_ps(4.0f))), _mm512_set1_epi32(15));
  const __m512 u = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(i), _mm512_set1_ps(0.25f), a);
  __m512 p = _mm512_permutexvar_ps(i, _mm512_load_ps(kErf[5]));
  for (int power = 4; power >= 0; --power) {
    p = _mm512_fmadd_ps(p, u, _mm512_permutexvar_ps(i, _mm512_load_ps(kErf[power])));
  }
  return _mm512_or_ps(p, sign);
}

struct Identity {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return x; }
};
struct Relu {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return _mm512_max_ps(_mm512_setzero_ps(), x); }
};
struct Clip {
  __m512 low, high;
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return _mm512_min_ps(high, _mm512_max_ps(low, x)); }
};
struct LeakyRelu {
  __m512 alpha;
  MODELFLOW_INLINE __m512 operator()(__m512 x) const {
    return _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), x, alpha);
  }
};
struct Sigmoid {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return sigmoid512(x); }
};
struct Silu {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return _mm512_mul_ps(x, sigmoid512(x)); }
};
struct HardSigmoid {
  __m512 alpha, beta;
  MODELFLOW_INLINE __m512 operator()(__m512 x) const {
    return _mm512_min_ps(_mm512_set1_ps(1.0f), _mm512_max_ps(_mm512_setzero_ps(), _mm512_fmadd_ps(alpha, x, beta)));
  }
};
struct HardSwish {
  HardSigmoid gate;
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return _mm512_mul_ps(x, gate(x)); }
};
struct Gelu {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const {
    const __m512 half = _mm512_mul_ps(x, _mm512_set1_ps(0.5f));
    return _mm512_fmadd_ps(half, erf512(_mm512_mul_ps(x, _mm512_set1_ps(0.70710678f))), half);
  }
};
struct GeluTanh {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const {
    const __m512 x2 = _mm512_mul_ps(x, x);
    const __m512 inner = _mm512_fmadd_ps(_mm512_mul_ps(x2, _mm512_set1_ps(0.044715f)), x, x);
    const __m512 half = _mm512_mul_ps(x, _mm512_set1_ps(0.5f));
    return _mm512_fmadd_ps(half, tanh512(_mm512_mul_ps(inner, _mm512_set1_ps(0.79788456f))), half);
  }
};
struct QuickGelu {
  __m512 alpha;
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return _mm512_mul_ps(x, sigmoid512(_mm512_mul_ps(alpha, x))); }
};
struct Mish {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const {
    const __m512 e = _mm512_maskz_mov_ps(above_nothing(x), exp512(_mm512_min_ps(_mm512_set1_ps(20.0f), x)));
    const __m512 n = _mm512_mul_ps(e, _mm512_add_ps(e, _mm512_set1_ps(2.0f)));  // tanh(log(1 + e)) = n / (n + 2)
    return _mm512_mul_ps(x, _mm512_mul_ps(n, reciprocal512(_mm512_add_ps(n, _mm512_set1_ps(2.0f)))));
  }
};
struct Tanh {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return tanh512(x); }
};

/// f, then times scale plus shift. Exact for 1 and 0, and hidden behind memory: so every activation is wrapped.
template <class F>
struct Affine {
  F f;
  __m512 scale, shift;
  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return _mm512_fmadd_ps(f(x), scale, shift); }
};

/// Calls `body` with the functor for this activation: the switch runs once, the loop inside `body` has none.
template <class Body>
void with_activation(const ActivationSpec& spec, Body plain_body) {
  const __m512 scale = _mm512_set1_ps(spec.scale), shift = _mm512_set1_ps(spec.shift);
  const auto body = [&](auto f) { return plain_body(Affine<decltype(f)>{f, scale, shift}); };
  const __m512 alpha = _mm512_set1_ps(spec.alpha), beta = _mm512_set1_ps(spec.beta);
  switch (spec.kind) {
    case Activation::none:
      return plain_body(Identity{});
    case Activation::relu:
      return body(Relu{});
    case Activation::clip:
      return body(Clip{alpha, beta});
    case Activation::leaky_relu:
      return body(LeakyRelu{alpha});
    case Activation::sigmoid:
      return body(Sigmoid{});
    case Activation::silu:
      return body(Silu{});
    case Activation::hard_swish:
      return body(HardSwish{{alpha, beta}});
    case Activation::hard_sigmoid:
      return body(HardSigmoid{alpha, beta});
    case Activation::gelu:
      return body(Gelu{});
    case Activation::gelu_tanh:
      return body(GeluTanh{});
    case Activation::quick_gelu:
      return body(QuickGelu{alpha});
    case Activation::mish:
      return body(Mish{});
    case Activation::tanh:
      return body(Tanh{});
  }
}

/// The lanes of a vector that holds the last `n` < 16 floats.
MODELFLOW_INLINE __mmask16 tail_mask(std::size_t n) { return static_cast<__mmask16>((1u << n) - 1); }

}  // namespace
}  // namespace modelflow::cpu
