// SiLU, GELU and HardSwish for results of 8 bits. For files named *_vnni.cpp only; everything has internal linkage.
#pragma once

#include "backends/cpu/vector/activation.h"

namespace modelflow::cpu {
namespace {

/// An odd function T, of which the activation x * (1 + T(x)) / 2 is made, for 0 <= a <= limit: parabolas around the
/// multiples of limit / 31, row k holds the factors of a^k. Beyond the limit T is 1. Results are off by less than a
/// fiftieth of a step of u8 that has room for them.
struct GateTable {
  float limit;
  float factors[3][32];
};

/// tanh(a / 2), SiLU. Largest error 4e-5, and 9e-5 beyond.
constexpr GateTable kTanhHalf = {
    10,
    {{-5.43948727e-06f, -0.00106538972f, -0.00825103838f, -0.0203616321f, -0.0281771831f, -0.0200163163f, 0.0119380401f,
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
      -6.2769228e-05f,  -4.9223203e-05f}}};

/// erf(a / sqrt(2)), GELU. Largest error 1.3e-5.
constexpr GateTable kErfRoot = {
    4.5f,
    {{-1.58679995e-06f, -0.000324077788f, -0.00287052826f, -0.00901404768f, -0.0186511781f, -0.0299466476f,
      -0.0395177938f,   -0.0430072099f,   -0.0359005928f,  -0.0143952612f,  0.0238746386f,  0.0794022828f,
      0.150729895f,     0.234711394f,     0.327029645f,    0.422841817f,    0.51742059f,    0.606682479f,
      0.687536657f,     0.758033812f,     0.817335665f,    0.865551591f,    0.903499365f,   0.932446003f,
      0.953868747f,     0.969264567f,     0.980017185f,    0.987319946f,    0.992145777f,   0.995250285f,
      0.997195363f,     0.998148561f},
     {0.798278093f,   0.805633962f,   0.828910768f,   0.862815499f,   0.900888681f,  0.935660005f,   0.959845364f,
      0.967448056f,   0.954577744f,   0.9198699f,     0.86447686f,    0.791682422f,  0.706255436f,   0.613684893f,
      0.519438267f,   0.428353369f,   0.344229877f,   0.269639075f,   0.205929369f,  0.153379455f,   0.111439183f,
      0.0790011436f,  0.0546575598f,  0.0369129479f,  0.024338996f,   0.0156711061f, 0.00985465664f, 0.00605333131f,
      0.00363261811f, 0.00212997198f, 0.00122041965f, 0.000788216363f},
     {-0.0144646429f,   -0.0572478659f,  -0.110935695f,   -0.157869846f,    -0.195537135f,    -0.222323418f,
      -0.237611294f,    -0.241751477f,   -0.235923395f,   -0.221915737f,    -0.201866776f,    -0.178004682f,
      -0.152422309f,    -0.12690942f,    -0.102852866f,   -0.0812030062f,   -0.0624953918f,   -0.0469114371f,
      -0.034360446f,    -0.0245669372f,  -0.0171511471f,  -0.0116950711f,   -0.00779078668f,  -0.00507126329f,
      -0.00322614517f,  -0.00200609583f, -0.00121949113f, -0.000724798592f, -0.000421225355f, -0.00023939331f,
      -0.000133059977f, -8.40652137e-05f}}};

/// tanh(sqrt(2 / pi) * (a + 0.044715 * a^3)), GELU by tanh. Largest error 1.3e-5.
constexpr GateTable kTanhCubic = {
    4.5f,
    {{-1.59461592e-06f, -0.000325567991f, -0.0028807465f, -0.00903003104f, -0.0186354015f, -0.0298136882f,
      -0.039149873f,    -0.0423054285f,   -0.0348588191f, -0.0131646059f,  0.0249685217f,  0.0799126774f,
      0.150207147f,     0.232848957f,     0.323785096f,   0.418486357f,    0.512496889f,   0.601883829f,
      0.683547139f,     0.755378723f,     0.816284001f,   0.866090178f,    0.90537554f,    0.935254753f,
      0.957155704f,     0.972614825f,     0.983114123f,   0.989968598f,    0.994265795f,   0.996850014f,
      0.998339176f,     0.999007165f},
     {0.79828006f,    0.805669963f,   0.829028487f,    0.862967968f,   0.900919676f,  0.935335219f,   0.958933473f,
      0.965828061f,   0.952330828f,   0.917313218f,    0.862114608f,   0.790082574f,  0.70589155f,    0.614797592f,
      0.52196306f,    0.431936175f,   0.348320544f,    0.273627698f,   0.209282666f,  0.155739725f,   0.112666532f,
      0.0791590437f,  0.0539574325f,  0.0356407538f,   0.0227856506f,  0.0140815871f, 0.00840163231f, 0.00483324192f,
      0.00267741247f, 0.00142637524f, 0.000729853578f, 0.000426933781f},
     {-0.0145360017f,   -0.0575194433f,  -0.111399926f,   -0.158386454f,   -0.19593747f,    -0.2224534f,
      -0.237374291f,    -0.241138831f,   -0.235021651f,   -0.220886976f,   -0.200907096f,   -0.17729409f,
      -0.152081445f,    -0.126975462f,   -0.103279598f,   -0.081881687f,   -0.0632875487f,  -0.0476827994f,
      -0.0350070819f,   -0.0250288174f,  -0.0174128916f,  -0.0117770135f,  -0.00773511548f, -0.00492786663f,
      -0.00304141804f,  -0.00181620033f, -0.00104798691f, -0.00058355357f, -0.00031315902f, -0.000161746822f,
      -8.03013172e-05f, -4.59576004e-05f}}};

/// What an activation needs to give steps of y at once: its argument arrives multiplied with `before`, so that nothing
/// is left to be multiplied behind it.
struct Gates {
  float before;
  float alpha, beta;  ///< of HardSwish, whose argument has the factor in it
  float limit, index;
  alignas(64) float factors[3][32];
};

/// `scale`: steps of y per unit of the activation, above 0. `unit`: what the table counts in, per unit of x, above 0.
Gates table_gates(const GateTable& table, float scale, float unit = 1) {
  Gates g{};
  g.before = scale / 2;  // (x + |x| * T(|x|)) / 2
  const float step = g.before / unit;
  g.limit = table.limit * step, g.index = 31 / g.limit;
  float power = 1;
  for (int k = 0; k < 3; ++k, power /= step) {
    for (int i = 0; i < 32; ++i) g.factors[k][i] = table.factors[k][i] * power;
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

/// x * (1 + T(x)) / 2.
struct TableSteps {
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
    return _mm512_permutex2var_ps(_mm512_load_ps(g.factors[power]), index, _mm512_load_ps(g.factors[power] + 16));
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

/// Whether there are gates for the activation; its scale and shift are those of steps of y.
bool gates_of(const ActivationSpec& a, Gates& g) {
  g = {};
  g.before = 1;
  if (!(a.scale > 0) || a.shift != 0) return false;
  if (a.kind == Activation::silu) g = table_gates(kTanhHalf, a.scale);
  if (a.kind == Activation::quick_gelu && a.alpha > 0) g = table_gates(kTanhHalf, a.scale, a.alpha);
  if (a.kind == Activation::gelu) g = table_gates(kErfRoot, a.scale);
  if (a.kind == Activation::gelu_tanh) g = table_gates(kTanhCubic, a.scale);
  if (a.kind == Activation::hard_swish) g = hard_swish_gates(a.scale, a.alpha, a.beta);
  return g.index > 0 || a.kind == Activation::hard_swish;
}

}  // namespace
}  // namespace modelflow::cpu
