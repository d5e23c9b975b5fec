#pragma once

// SiLU for results of 8 bits. For files named *_vnni.cpp only; everything has internal linkage.

#include "backends/cpu/activation_avx512.h"

namespace modelflow::cpu {
namespace {

/// 2 * sigmoid(a) - 1 for 0 <= a <= 12 as polynomials of degree 3 around the multiples of 12 / 31; row k holds the
/// factors of a^k. Largest error 2e-6 below 6, 1.2e-5 at the end: x * sigmoid(x) is off by a thousandth of a step of a
/// u8 result that has room for it. A third of the instructions of sigmoid512.
alignas(64) constexpr float kSigmoid[4][32] = {
    {-1.97443999e-08f, -0.000102565224f, -0.0032154175f, -0.017652059f, -0.0463165082f, -0.0771251693f, -0.0898828804f,
     -0.0697235316f,   -0.0135659222f,   0.0719245449f,  0.17564781f,   0.28649804f,    0.395674825f,   0.497294843f,
     0.588084102f,     0.666739702f,     0.73328191f,    0.78852433f,   0.833688676f,   0.870147288f,   0.899263978f,
     0.922303498f,     0.940388024f,     0.954482555f,   0.965397775f,  0.973802686f,   0.980240941f,   0.985149324f,
     0.988875151f,     0.991691828f,     0.993813276f,   0.995405555f},
    {0.50000304f,    0.50115931f,    0.516445875f,   0.560786843f,   0.624503553f,   0.678199053f,   0.696821332f,
     0.673228562f,   0.615410686f,   0.537503183f,   0.452828288f,   0.370910048f,   0.297226578f,   0.234123766f,
     0.181921542f,   0.139815703f,   0.106493816f,   0.0805082917f,  0.0604784638f,  0.0451843068f,  0.0335970372f,
     0.0248759314f,  0.0183491353f,  0.0134886466f,  0.00988485105f, 0.00722326059f, 0.00526446616f, 0.00382751878f,
     0.00277648936f, 0.00200981437f, 0.00145196309f, 0.00104700238f},
    {-7.03601036e-05f, -0.00442720531f,  -0.0298377611f,   -0.0755303651f,   -0.122901484f,   -0.154157355f,
     -0.163220897f,    -0.154011995f,    -0.134155482f,    -0.110476188f,    -0.0874240249f,  -0.0672372356f,
     -0.0506556891f,   -0.037590608f,    -0.0275832042f,   -0.0200683717f,   -0.0145052923f,  -0.0104302233f,
     -0.007468828f,    -0.0053299712f,   -0.00379271456f,  -0.00269221119f,  -0.00190695631f, -0.00134819839f,
     -0.000951557886f, -0.000670587702f, -0.000471925538f, -0.000331694435f, -0.00023285838f, -0.000163294346f,
     -0.000114395298f, -8.00629132e-05f},
    {-0.0412299745f,  -0.0356048569f,  -0.0212846864f,  -0.00548608089f, 0.00629271753f,  0.0123688169f,
     0.0138395978f,   0.0126407295f,   0.0103659695f,   0.00796556193f,  0.00587266916f,  0.00421386212f,
     0.00296964915f,  0.0020677268f,   0.00142809376f,  0.000980936689f, 0.000671298651f, 0.000458247931f,
     0.000312281569f, 0.000212564642f, 0.000144575824f, 9.82809943e-05f, 6.67862041e-05f, 4.53730172e-05f,
     3.08202652e-05f, 2.09327391e-05f, 1.42161653e-05f, 9.65419895e-06f, 6.55593612e-06f, 4.45187288e-06f,
     3.02303897e-06f, 2.0527682e-06f}};

/// Twice SiLU: what it is multiplied with afterwards takes the half.
struct TwiceSilu {
  MODELFLOW_INLINE __m512 operator()(__m512 x) const {
    const __m512 a = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x), b = _mm512_min_ps(a, _mm512_set1_ps(12.0f));
    // Adding this rounds to an integer, which is in the lowest bits then: all that a permutation looks at.
    const __m512i i = _mm512_castps_si512(_mm512_fmadd_ps(b, _mm512_set1_ps(31.0f / 12), _mm512_set1_ps(8388608.0f)));
    const auto factor = [i](int k) {
      return _mm512_permutex2var_ps(_mm512_load_ps(kSigmoid[k]), i, _mm512_load_ps(kSigmoid[k] + 16));
    };
    __m512 p = _mm512_fmadd_ps(factor(3), b, factor(2));
    p = _mm512_fmadd_ps(p, b, factor(1));
    p = _mm512_fmadd_ps(p, b, factor(0));
    return _mm512_fmadd_ps(p, a, x);
  }
};

}  // namespace
}  // namespace modelflow::cpu
