// Exponential, logistic function, hyperbolic tangent, error function, logarithm, sine and cosine of vectors, for each
// instruction set (see vector.h). NaN stays NaN, and an infinite argument gives the limit of the function, where there
// is one.
#pragma once

#include "backends/cpu/vector/gelu_fits.h"
#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

constexpr float kRounding = 12582912.0f;  // 1.5 * 2^23: added to a number, its lowest bits count ones

/// exp(x) of x in [-87, 88] to about 1 ulp: 2^n times the polynomial of Cephes' expf.
MODELFLOW_INLINE Floats exp_within(Floats x) {
  const Floats t = x * 1.44269504f + kRounding, n = t - kRounding;
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
#ifdef __AVX512F__
  return _mm512_scalef_ps(p, n);
#else
  return p * from_bits((bits(t) - bits(all(kRounding)) + 127) << 23);
#endif
}

/// exp(x) to about 1 ulp; arguments below -87 give exp(-87), above 88 give exp(88).
MODELFLOW_INLINE Floats exp(Floats x) { return exp_within(min(all(88.0f), max(all(-87.0f), x))); }

/// exp(x) of any x to about 2 ulp: infinity and 0 beyond the range, NaN stays NaN.
MODELFLOW_INLINE Floats exp_of_any(Floats x) {
  const Floats root = exp_within(min(all(174.0f), max(all(-174.0f), x)) * 0.5f);
  return root * root;
}

#ifdef __AVX512F__

/// 2^(i/32): with 32 of them two powers of what remains are enough.
alignas(64) constexpr float kPowers[32] = {
    1.0f,        1.0218972f,  1.04427373f, 1.06714046f, 1.09050775f, 1.1143868f,  1.13878858f, 1.1637249f,
    1.18920708f, 1.21524739f, 1.24185777f, 1.26905096f, 1.29683959f, 1.32523668f, 1.35425556f, 1.38390994f,
    1.41421354f, 1.44518077f, 1.47682619f, 1.50916445f, 1.54221082f, 1.5759809f,  1.61049032f, 1.64575553f,
    1.68179286f, 1.71861935f, 1.75625217f, 1.79470909f, 1.8340081f,  1.87416768f, 1.91520655f, 1.95714414f};

/// exp(x) of x in [-87, 87]. Half the instructions of exp where one of them looks up 32 numbers; its relative error
/// grows with the size of x to 2e-6, which is nothing to a sum with exp(0) in it.
struct QuickExp {
  __m512 low = _mm512_load_ps(kPowers), high = _mm512_load_ps(kPowers + 16);
  __m512 log2e = _mm512_set1_ps(1.44269504f), magic = _mm512_set1_ps(393216.0f);  // 1.5 * 2^23 / 32
  // 2^f = 1 + f (c1 + f c2) for |f| <= 1/64, largest relative error 5.3e-8.
  __m512 c1 = _mm512_set1_ps(0.693157315f), c2 = _mm512_set1_ps(0.240226537f);

  MODELFLOW_INLINE __m512 operator()(__m512 x) const { return of(0xffff, x); }
  /// 0 where a lane does not count.
  MODELFLOW_INLINE __m512 of(__mmask16 lanes, __m512 x) const {
    const __m512 t = _mm512_fmadd_ps(x, log2e, magic);  // its lowest bits count 32nds
    const __m512 n = _mm512_sub_ps(t, magic);
    const __m512 f = _mm512_fmsub_ps(x, log2e, n);
    const __m512 power = _mm512_permutex2var_ps(low, _mm512_castps_si512(t), high);
    const __m512 p = _mm512_fmadd_ps(c2, f, c1);
    return _mm512_maskz_scalef_ps(lanes, _mm512_fmadd_ps(_mm512_mul_ps(power, f), p, power), n);
  }
};

#elif defined(__AVX2__)

/// exp(x) of x in [-87, 87]. Without a second step of reduction the relative error grows with the size of x to 1.3e-6,
/// which is nothing to a sum with exp(0) in it.
struct QuickExp {
  MODELFLOW_INLINE Floats operator()(Floats x) const {
    const Floats log2e = all(1.44269504f);
    const Floats t = _mm256_fmadd_ps(x, log2e, all(kRounding)), f = _mm256_fmsub_ps(x, log2e, t - kRounding);
    // 2^f for |f| <= 1/2, largest relative error 9.1e-8.
    Floats p = f * 0.00132647273f + 0.00967151299f;
    p = p * f + 0.0555073358f;
    p = p * f + 0.240222424f;
    p = p * f + 0.693147004f;
    p = p * f + 1.0f;
    // The lowest bits of t count ones. Added to the bits of p, they could make a number of NaN.
    return p * from_bits((bits(t) << 23) + bits(all(1.0f)));
  }
};

#else

struct QuickExp {
  MODELFLOW_INLINE Floats operator()(Floats x) const { return exp_within(x); }
};

#endif

/// exp(x) of x <= 0, as exact as QuickExp, 0 below -87; NaN stays NaN.
struct ExpOfNegative {
  QuickExp exp = {};
  MODELFLOW_INLINE Floats operator()(Floats x) const {
#ifdef __AVX512F__
    return exp.of(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ), x);
#else
    return x < all(-87.0f) ? Floats{} : exp(x);
#endif
  }
};

/// 1 / d for d in the normal range.
MODELFLOW_INLINE Floats reciprocal(Floats d) {
#ifdef __AVX512F__  // the 14-bit estimate and one Newton step: a division takes four times as long
  const __m512 y = _mm512_rcp14_ps(d);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(d, y, _mm512_set1_ps(1.0f)), y, y);
#else
  return 1.0f / d;
#endif
}

/// y / (1 + exp(-x)). The divisor is infinite far below 0: -inf times the gate of SiLU is NaN, and the lowest number
/// times it nothing.
MODELFLOW_INLINE Floats gated(Floats y, Floats x) {
#ifdef __AVX512F__  // a division beside other work takes as long as the estimate and its Newton step, and is exact
  return y / (1.0f + QuickExp()(-min(all(104.0f), max(all(-104.0f), x))));
#else
  const Floats e = QuickExp()(-min(all(87.0f), max(all(-87.0f), x)));
  return y / (x < all(-87.0f) ? all(__builtin_inff()) : 1.0f + e);
#endif
}
MODELFLOW_INLINE Floats sigmoid(Floats x) { return gated(all(1.0f), x); }

/// x P(x^2) / Q(x^2), largest relative error 5.9e-8 (3.3e-7 as it is computed) up to 9, where it is 1.
MODELFLOW_INLINE Floats tanh(Floats x) {
  const Floats a = min(all(9.0f), max(all(-9.0f), x)), z = a * a;
  Floats p = z * 1.82555065e-11f - 1.27805491e-8f;
  p = p * z + 9.26745906e-6f;
  p = p * z + 2.92076613e-3f;
  p = p * z + 0.129192322f;
  p = p * z + 0.99999994f;
  Floats q = z * 2.28100791e-4f + 2.37631872e-2f;
  q = q * z + 0.462525159f;
  q = q * z + 1.0f;
  return min(all(1.0f), max(all(-1.0f), a * p * reciprocal(q)));
}

#ifdef __AVX512F__

/// Chebyshev fits of erf on [i/4, (i+1)/4), i < 16, one row per power of (x - i/4). Largest error 6.3e-8 absolute,
/// 1.8e-7 relative (against double over 2 million points).
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

MODELFLOW_INLINE Floats erf(Floats x) {
  const Floats a = min(all(3.9999998f), abs(x));
  const Ints i = __builtin_convertvector(a * 4.0f, Ints);
  const Floats u = a - __builtin_convertvector(i, Floats) * 0.25f;
  Floats p = picked(load(kErf[5]), i);
#pragma GCC unroll 5
  for (int power = 4; power >= 0; --power) p = p * u + picked(load(kErf[power]), i);
  return with_sign(p, x);
}

#else

/// x P(x^2) / Q(x^2), largest relative error 1.3e-8 (3.6e-7 as it is computed) up to 3.83, where it is 1 but for a last
/// digit. Half the time of a table in registers of 8 numbers.
MODELFLOW_INLINE Floats erf(Floats x) {
  const Floats a = min(all(3.83f), max(all(-3.83f), x)), z = a * a;
  Floats p = z * 2.12526538e-6f + 2.85983813e-4f;
  p = p * z + 3.64978192e-3f;
  p = p * z + 0.0524099804f;
  p = p * z + 0.187225267f;
  p = p * z + 1.12837911f;
  Floats q = z * 3.89222623e-5f + 1.14117959e-3f;
  q = q * z + 0.0147365546f;
  q = q * z + 0.112868369f;
  q = q * z + 0.499256998f;
  q = q * z + 1.0f;
  return min(all(1.0f), max(all(-1.0f), a * p / q));
}

#endif

#ifdef __AVX512F__

/// The polynomial of the interval that x lies in; see gelu_fits.h.
MODELFLOW_INLINE Floats fitted(const float (&fit)[10][16], Floats x) {
  const Floats within = min(all(5.5f), max(all(-5.6f), x));
  const Floats t = within * (1 / kGeluStep) + (kRounding + 16), n = t - (kRounding + 16), u = within - n * kGeluStep;
  const auto at = [&](int power) {  // the lowest bits of t count intervals
    return Floats(_mm512_permutex2var_ps(load(fit[2 * power]), reinterpret_cast<__m512i>(t), load(fit[2 * power + 1])));
  };
  Floats p = at(4);
#pragma GCC unroll 4
  for (int power = 3; power >= 0; --power) p = p * u + at(power);
  return p;
}
MODELFLOW_INLINE Floats normal(Floats x) { return fitted(kNormal, x); }
MODELFLOW_INLINE Floats normal_by_tanh(Floats x) { return fitted(kNormalByTanh, x); }

#else

/// (1 + erf(x / sqrt(2))) / 2: the gate of GELU.
MODELFLOW_INLINE Floats normal(Floats x) { return erf(x * 0.70710678f) * 0.5f + 0.5f; }
/// The same by way of tanh (Hendrycks and Gimpel).
MODELFLOW_INLINE Floats normal_by_tanh(Floats x) {
  return tanh((x * x * 0.044715f * x + x) * 0.79788456f) * 0.5f + 0.5f;
}

#endif

/// log(1 + m) - m for 1 + m in [sqrt(1/2), sqrt(2)): the polynomial of Cephes' logf. `low` is added before the largest
/// term.
MODELFLOW_INLINE Floats log_beyond(Floats m, Floats low) {
  const Floats z = m * m;
  Floats p = 7.0376836292e-2f * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  return p * m * z - low - 0.5f * z;
}

/// Natural logarithm to about 1 ulp. x = m * 2^e with m around 1.
MODELFLOW_INLINE Floats log(Floats x) {
  const Ints tiny = bits(x) < 0x00800000;  // below the normal range, or below 0
  const Ints scaled = bits(x * (tiny ? all(8388608.0f) : all(1.0f)));
  const Ints exponent = (scaled - 0x3f3504f3) >> 23;  // m lies in [sqrt(1/2), sqrt(2))
  const Floats m = from_bits(scaled - (exponent << 23)) - 1.0f;
  const Floats e = __builtin_convertvector(exponent + (tiny & -23), Floats);
  const Floats y = m + log_beyond(m, 2.12194440e-4f * e) + 0.693359375f * e;
  const Floats infinity = all(__builtin_inff());
  // Of 0 minus infinity, of infinity itself, of what is below 0 no number.
  const Floats odd = x == Floats{} ? -infinity : x == infinity ? infinity : all(__builtin_nanf(""));
  return ((x > Floats{}) & (x < infinity)) ? y : odd;
}

/// log(1 + x) of x in [0, 1] to about 1 ulp, however small x is.
MODELFLOW_INLINE Floats log_of_one_and(Floats x) {
  return x < all(0.4142f) ? x + log_beyond(x, Floats{}) : log(1.0f + x);
}

/// sin(x) or cos(x) to about 1 ulp: the sine of what remains of x beside the nearest multiple of pi, of pi and a half
/// for the cosine. Pi is a sum of four numbers of so few bits that multiples of the first ones are exact up to kLargest
/// (Cody and Waite); larger numbers, which few models have, go to the C library one by one. The polynomial, a Chebyshev
/// fit, is off by 6.1e-9 at most.
template <bool cosine>
MODELFLOW_INLINE Floats sine(Floats x) {
  constexpr float kLargest = 8192.0f, kHalf = cosine ? 0.5f : 0.0f;
  const Floats t = (x * 0.318309886f - kHalf) + kRounding, n = (t - kRounding) + kHalf;  // the lowest bit of t: odd n
  const Floats r =
      (((x - n * 3.140625f) - n * 0.0009675025939941406f) - n * 1.5099067240953445e-07f) - n * 5.126688136514179e-12f;
  const Floats z = r * r, a = abs(r);
  Floats p = z * 2.60563115e-6f - 1.98095396e-4f;
  p = p * z + 8.33306555e-3f;
  p = p * z - 0.166666597f;
  const Ints sign = (bits(r) ^ (bits(t) << 31) ^ (cosine ? bits(all(-0.0f)) : Ints{})) & bits(all(-0.0f));
  Floats y = from_bits(bits(a + a * (z * p)) ^ sign);
  if (!all_of(abs(x) <= kLargest))
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      if (!(__builtin_fabsf(x[lane]) <= kLargest)) y[lane] = cosine ? __builtin_cosf(x[lane]) : __builtin_sinf(x[lane]);
  return y;
}
MODELFLOW_INLINE Floats sin(Floats x) { return sine<false>(x); }
MODELFLOW_INLINE Floats cos(Floats x) { return sine<true>(x); }

}  // namespace
}  // namespace modelflow::cpu
