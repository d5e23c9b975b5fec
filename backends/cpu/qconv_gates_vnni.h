#pragma once

// SiLU and HardSwish for results of 8 bits. For files named *_vnni.cpp only; everything has internal linkage.

#include "backends/cpu/activation_avx512.h"

namespace modelflow::cpu {
namespace {

/// tanh(a / 2) for 0 <= a <= 10 as parabolas around the multiples of 10 / 31; row k holds the factors of a^k. Largest
/// error 4e-5, and 9e-5 beyond 10: SiLU is off by less than a fiftieth of a step of a u8 result that has room for it.
constexpr float kTanhHalf[3][32] = {
    {-5.43948727e-06f, -0.00106538972f, -0.00825103838f, -0.0203616321f, -0.0281771831f, -0.0200163163f, 0.0119380401f,
     0.0688458681f,    0.146213964f,    0.236647606f,    0.332435042f,   0.42713365f,    0.516169667f,   0.596793413f,
     0.667732477f,     0.728770912f,    0.780370414f,    0.823375642f,   0.85880518f,    0.887714863f,   0.91111511f,
     0.929926276f,     0.944959104f,    0.956910491f,    0.966368794f,   0.973823726f,   0.979678154f,   0.984260559f,
     0.987836421f,     0.990619123f,    0.992779136f,    0.994081318f},
    {0.500607193f,   0.511538327f,   0.541418433f,   0.571921945f,   0.586259067f,   0.575391591f,   0.539591253f,
     0.485396951f,   0.421436161f,   0.355420798f,   0.292835772f,   0.236846015f,   0.188778967f,   0.14873524f,
     0.116112351f,   0.0899794102f,  0.0693138912f,  0.0531350411f,  0.040568497f,   0.0308692362f,  0.0234213583f,
     0.0177264083f,  0.0133871958f,  0.0100908866f,  0.00759328622f, 0.00570512097f, 0.00428051595f, 0.00320756482f,
     0.00240075029f, 0.00179493555f, 0.00134064653f, 0.00107502087f},
    {-0.0100506702f,   -0.0388328284f,   -0.0701835304f,   -0.0894507542f,   -0.0960294753f,   -0.0924122706f,
     -0.0823784769f,   -0.0694696531f,   -0.0562455542f,   -0.0441945083f,   -0.0339693017f,   -0.0256918818f,
     -0.0192034878f,   -0.014230663f,    -0.0104796533f,   -0.00768224569f,  -0.00561294332f,  -0.00409118133f,
     -0.00297679589f,  -0.00216321647f,  -0.00157055317f,  -0.001139506f,    -0.000826364092f, -0.000599066087f,
     -0.000434178393f, -0.000314617006f, -0.000227949451f, -0.000165140344f, -0.000119629309f, -8.66562914e-05f,
     -6.2769228e-05f,  -4.9223203e-05f}};

/// What an activation needs to give steps of y at once: its argument arrives multiplied with `before`, so that nothing
/// is left to be multiplied behind it.
struct Gates {
  float before;
  float alpha, beta;  ///< of HardSwish, whose argument has the factor in it
  float limit, index;
  alignas(64) float tanh_half[3][32];
};

/// `scale`: steps of y per unit of the activation, above 0.
Gates silu_gates(float scale) {
  Gates g{};
  g.before = scale / 2;  // x * sigmoid(x) = (x + |x| * tanh(|x| / 2)) / 2
  g.limit = 10 * g.before, g.index = 31 / g.limit;
  float power = 1;
  for (int k = 0; k < 3; ++k, power /= g.before) {
    for (int i = 0; i < 32; ++i) g.tanh_half[k][i] = kTanhHalf[k][i] * power;
  }
  return g;
}

Gates hard_swish_gates(float scale, float alpha, float beta) {
  Gates g{};
  g.before = scale, g.alpha = alpha / scale, g.beta = beta;
  return g;
}

/// The activation of K vectors, one operation after the other on all of them where it has that form.
template <class Act, int K>
MODELFLOW_INLINE void act_on(const Act& act, __m512 (&x)[K]) {
  if constexpr (requires { act.on(x); }) {
    act.on(x);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) x[i] = act(x[i]);
  }
}

struct SiluSteps {
  const Gates& g;
  template <int K>
  MODELFLOW_INLINE void on(__m512 (&x)[K]) const {
    __m512 a[K], b[K], p[K];
    __m512i index[K];
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) a[i] = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x[i]);
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) b[i] = _mm512_min_ps(a[i], _mm512_set1_ps(g.limit));
      // Adding 2^23 rounds to an integer, which is in the lowest bits then: all that a permutation looks at.
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i)
      index[i] = _mm512_castps_si512(_mm512_fmadd_ps(b[i], _mm512_set1_ps(g.index), _mm512_set1_ps(8388608.0f)));
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) p[i] = factor(2, index[i]);
#pragma GCC unroll 3
    for (int power = 1; power >= 0; --power) {
#pragma GCC unroll 4
      for (int i = 0; i < K; ++i) p[i] = _mm512_fmadd_ps(p[i], b[i], factor(power, index[i]));
    }
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) x[i] = _mm512_fmadd_ps(p[i], a[i], x[i]);
  }

 private:
  MODELFLOW_INLINE __m512 factor(int power, __m512i index) const {
    return _mm512_permutex2var_ps(_mm512_load_ps(g.tanh_half[power]), index, _mm512_load_ps(g.tanh_half[power] + 16));
  }
};

struct HardSwishSteps {
  const Gates& g;
  template <int K>
  MODELFLOW_INLINE void on(__m512 (&x)[K]) const {
    __m512 gate[K];
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) gate[i] = _mm512_fmadd_ps(x[i], _mm512_set1_ps(g.alpha), _mm512_set1_ps(g.beta));
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) gate[i] = _mm512_max_ps(gate[i], _mm512_setzero_ps());
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) gate[i] = _mm512_min_ps(gate[i], _mm512_set1_ps(1.0f));
#pragma GCC unroll 4
    for (int i = 0; i < K; ++i) x[i] = _mm512_mul_ps(x[i], gate[i]);
  }
};

}  // namespace
}  // namespace modelflow::cpu
