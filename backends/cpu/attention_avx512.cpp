#include "backends/cpu/activation_avx512.h"
#include "backends/cpu/attention.h"
#include "backends/cpu/gemm.h"

// A block of rows against all keys it sees, a block of keys at a time: scores, exponentials and the product with the
// values stay in L2, most of them in L1. Both products are gemm_avx512 on packed keys and values.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kRows = 48;              // eight tiles of six: keys come from L2 once for all of them
constexpr std::size_t kKeys = 256;             // keys per block when there are more than kWhole
constexpr std::size_t kWhole = 384;            // up to here one block: no rescaling
constexpr std::size_t kMostAhead = 256 << 10;  // bytes of a head that fit in L2 beside another
constexpr float kNothing = -__builtin_inff();

std::size_t panels(std::size_t n) { return (n + kGemmPanel - 1) / kGemmPanel; }
std::size_t round_up(std::size_t n) { return (n + 15) / 16 * 16; }
std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }
std::size_t key_block(std::size_t keys) { return keys <= kWhole ? keys : kKeys; }

/// 2^(i/32): with 32 of them two powers of what remains are enough.
alignas(64) constexpr float kPowers[32] = {
    1.0f,        1.0218972f,  1.04427373f, 1.06714046f, 1.09050775f, 1.1143868f,  1.13878858f, 1.1637249f,
    1.18920708f, 1.21524739f, 1.24185777f, 1.26905096f, 1.29683959f, 1.32523668f, 1.35425556f, 1.38390994f,
    1.41421354f, 1.44518077f, 1.47682619f, 1.50916445f, 1.54221082f, 1.5759809f,  1.61049032f, 1.64575553f,
    1.68179286f, 1.71861935f, 1.75625217f, 1.79470909f, 1.8340081f,  1.87416768f, 1.91520655f, 1.95714414f};

/// exp(x) of x <= 0, 0 below -87; NaN stays NaN. Half the instructions of exp512.
struct ExpOfNegative {
  __m512 low = _mm512_load_ps(kPowers), high = _mm512_load_ps(kPowers + 16);
  __m512 log2e = _mm512_set1_ps(1.44269504f), magic = _mm512_set1_ps(393216.0f);  // 1.5 * 2^23 / 32
  // 2^f = 1 + f (c1 + f c2) for |f| <= 1/64, largest relative error 5.3e-8.
  __m512 c1 = _mm512_set1_ps(0.693157315f), c2 = _mm512_set1_ps(0.240226537f), floor = _mm512_set1_ps(-87.0f);

  MODELFLOW_INLINE __m512 operator()(__m512 x) const {
    const __m512 t = _mm512_fmadd_ps(x, log2e, magic);  // its lowest bits count 32nds
    const __m512 n = _mm512_sub_ps(t, magic);
    const __m512 f = _mm512_fmsub_ps(x, log2e, n);
    const __m512 power = _mm512_permutex2var_ps(low, _mm512_castps_si512(t), high);
    const __m512 p = _mm512_fmadd_ps(c2, f, c1);
    const __m512 e = _mm512_fmadd_ps(_mm512_mul_ps(power, f), p, power);
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, floor, _CMP_NLT_UQ), e, n);
  }
};

MODELFLOW_INLINE __mmask16 lanes(std::size_t left) { return left < 16 ? tail_mask(left) : __mmask16{0xffff}; }

/// The lanes of each of four registers, combined by `f`: one register's after the other's.
template <class F>
MODELFLOW_INLINE __m128 combine4(const __m512 (&x)[4], F f) {
  const __m512 ab = f(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
  const __m512 cd = f(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
  const __m512 all = f(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
  const __m512 half = f(all, _mm512_shuffle_f32x4(all, all, 0x4e));
  return _mm512_castps512_ps128(f(half, _mm512_shuffle_f32x4(half, half, 0xb1)));
}
MODELFLOW_INLINE __m128 sums4(const __m512 (&x)[4]) {
  return combine4(
      x, [](__m512 a, __m512 b) __attribute__((always_inline)) { return _mm512_add_ps(a, b); });
}
MODELFLOW_INLINE __m128 largest4(const __m512 (&x)[4]) {
  return combine4(
      x, [](__m512 a, __m512 b) __attribute__((always_inline)) { return _mm512_max_ps(a, b); });
}

/// Adds the mask to a row of scores; the largest of what comes out, lane by lane.
MODELFLOW_INLINE __m512 largest(float* s, std::size_t n, const float* mask, std::size_t mask_column) {
  const __m512 nothing = _mm512_set1_ps(kNothing);
  __m512 best = nothing;
  if (!mask) {
    for (std::size_t j = 0; j < n; j += 16) {
      best = _mm512_max_ps(best, _mm512_mask_loadu_ps(nothing, lanes(n - j), s + j));
    }
    return best;
  }
  const __m512 all = _mm512_set1_ps(mask_column ? 0 : *mask);
  for (std::size_t j = 0; j < n; j += 16) {
    const __mmask16 m = lanes(n - j);
    const __m512 add = mask_column ? _mm512_maskz_loadu_ps(m, mask + j) : all;
    const __m512 x = _mm512_add_ps(_mm512_maskz_loadu_ps(m, s + j), add);
    _mm512_mask_storeu_ps(s + j, m, x);
    best = _mm512_mask_max_ps(best, m, best, x);
  }
  return best;
}

/// s = exp(s - max), and the sum, lane by lane.
MODELFLOW_INLINE __m512 exponentials(float* s, std::size_t n, float max, const ExpOfNegative& exp) {
  const __m512 base = _mm512_set1_ps(max == kNothing ? 0 : max);
  __m512 sum = _mm512_setzero_ps();
  std::size_t j = 0;
  for (; j + 16 <= n; j += 16) {
    const __m512 e = exp(_mm512_sub_ps(_mm512_loadu_ps(s + j), base));
    _mm512_storeu_ps(s + j, e);
    sum = _mm512_add_ps(sum, e);
  }
  if (j < n) {
    const __mmask16 m = tail_mask(n - j);
    const __m512 e = _mm512_maskz_mov_ps(m, exp(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, s + j), base)));
    _mm512_mask_storeu_ps(s + j, m, e);
    sum = _mm512_add_ps(sum, e);
  }
  return sum;
}

MODELFLOW_INLINE float exp_of_negative(float x, const ExpOfNegative& exp) {
  return _mm512_cvtss_f32(exp(_mm512_set1_ps(x)));
}

MODELFLOW_INLINE void fetch(const float* row, std::size_t floats) {
  for (std::size_t i = 0; i < floats; i += 16) _mm_prefetch(reinterpret_cast<const char*>(row + i), _MM_HINT_T0);
}

/// What to bring into cache while a row is in work: the rows of y, and the operands of the head that comes next. They
/// lie far apart, in many pages, and would otherwise cost as much as a fifth of the time.
struct Ahead {
  const AttentionHead* next = nullptr;
  std::size_t keys = 0;  // of the next head, per row

  Ahead(const AttentionHead& h, const AttentionHead* after) {
    if (!after || h.keys * (h.depth + h.width) * sizeof(float) > kMostAhead) return;
    next = after;
    keys = h.k == after->k ? 0 : (h.keys + h.rows - 1) / h.rows;
  }

  MODELFLOW_INLINE void row(const AttentionHead& h, std::size_t row) const {
    fetch(h.y + row * h.y_row, h.width);
    if (!next) return;
    fetch(next->q + row * next->q_row, next->depth);
    for (std::size_t j = row * keys; j < least(row * keys + keys, next->keys); ++j) {
      fetch(next->k + j * next->k_row, next->depth);
      fetch(next->v + j * next->v_row, next->width);
    }
  }
};

/// The rows of a block: where their scores and sums lie, what they have gathered.
struct Rows {
  const AttentionHead& head;
  std::size_t first, count;
  float *scores, *values;
  std::size_t scores_row, values_row;
  float max[kRows], sum[kRows];  // kRows is a multiple of 4

  /// Adds a block of keys to row `i`; what was gathered before is scaled to the new largest.
  MODELFLOW_INLINE void gather(std::size_t i, float new_max, float new_sum, const ExpOfNegative& exp) {
    const float old = max[i];
    max[i] = new_max;
    if (old == new_max || old == kNothing) {
      sum[i] += new_sum;
      return;
    }
    const float factor = exp_of_negative(old - new_max, exp);
    sum[i] = sum[i] * factor + new_sum;
    float* row = values + i * values_row;
    for (std::size_t j = 0; j < values_row; j += 16) {
      _mm512_storeu_ps(row + j, _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_set1_ps(factor)));
    }
  }
};

/// Scores of the keys [key, key + keys) become exponentials.
void softmax(Rows& r, const Ahead& ahead, std::size_t key, std::size_t keys) {
  const ExpOfNegative exp;
  const AttentionHead& h = r.head;
  const auto seen = [&](std::size_t i) {
    if (!h.causal) return keys;
    const std::size_t end = r.first + i + 1;
    return end <= key ? 0 : least(end - key, keys);
  };
  for (std::size_t begin = 0; begin < r.count; begin += 4) {  // four rows: their chains of instructions overlap
    const std::size_t end = least(begin + 4, r.count);
    __m512 lanes_of[4];
    for (__m512& lanes : lanes_of) lanes = _mm512_set1_ps(kNothing);
    for (std::size_t i = begin; i < end; ++i) {
      if (key == 0) ahead.row(h, r.first + i);
      const float* mask = h.mask ? h.mask + (r.first + i) * h.mask_row + key * h.mask_column : nullptr;
      lanes_of[i - begin] = largest(r.scores + i * r.scores_row, seen(i), mask, h.mask_column);
    }
    float max[4], sum[4];
    _mm_storeu_ps(max, _mm_max_ps(largest4(lanes_of), _mm_loadu_ps(r.max + begin)));
    for (std::size_t i = begin; i < end; ++i) {
      float* s = r.scores + i * r.scores_row;
      lanes_of[i - begin] = exponentials(s, seen(i), max[i - begin], exp);
      for (std::size_t j = seen(i); j < keys; ++j) s[j] = 0;
    }
    _mm_storeu_ps(sum, sums4(lanes_of));
    for (std::size_t i = begin; i < end; ++i) r.gather(i, max[i - begin], sum[i - begin], exp);
  }
}

/// values / sum into y.
void finish(const Rows& r) {
  const AttentionHead& h = r.head;
  for (std::size_t i = 0; i < r.count; ++i) {
    const bool zero = h.guard && !(r.sum[i] > 0);
    const __m512 sum = _mm512_set1_ps(zero ? 1 : 1 / r.sum[i]);
    float* y = h.y + (r.first + i) * h.y_row;
    for (std::size_t j = 0; j < h.width; j += 16) {
      const __mmask16 m = lanes(h.width - j), kept = zero ? __mmask16{0} : m;
      _mm512_mask_storeu_ps(y + j, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(kept, r.values + i * r.values_row + j), sum));
    }
  }
}

void block(Rows& r, const Ahead& ahead, const float* packed) {
  const AttentionHead& h = r.head;
  const float *keys = packed, *values = packed + packed_b_floats(h.depth, h.keys);
  const std::size_t seen = h.causal ? least(r.first + r.count, h.keys) : h.keys, step = key_block(h.keys);
  for (std::size_t i = 0; i < r.count; ++i) {
    r.max[i] = kNothing;
    r.sum[i] = 0;
  }
  Gemm scores;
  scores.m = r.count;
  scores.k = h.depth;
  scores.a = h.q + r.first * h.q_row;
  scores.lda = h.q_row;
  scores.ldb = kGemmPanel;
  scores.panel = kGemmPanel * h.depth;
  scores.c = r.scores;
  scores.ldc = r.scores_row;
  scores.scale = h.scale;
  Gemm product;
  product.m = r.count;
  product.n = h.width;
  product.a = r.scores;
  product.lda = r.scores_row;
  product.ldb = kGemmPanel;
  product.panel = kGemmPanel * h.keys;
  product.c = r.values;
  product.ldc = product.ldr = r.values_row;
  for (std::size_t key = 0; key < seen; key += step) {
    const std::size_t count = least(step, seen - key);
    scores.n = count;
    scores.b = keys + key * h.depth;  // key is a multiple of kGemmPanel
    gemm_avx512(scores, 0, r.count, 0, count);
    softmax(r, ahead, key, count);
    product.k = count;
    product.b = values + key * kGemmPanel;
    product.residual = key ? r.values : nullptr;
    gemm_avx512(product, 0, r.count, 0, h.width);
  }
  finish(r);
}

void run_rows(const AttentionHead& h, const AttentionHead* next, const float* packed, std::size_t begin,
              std::size_t end, float* scratch) {
  const Ahead ahead(h, next);
  const std::size_t scores_row = round_up(key_block(h.keys));
  for (std::size_t row = begin; row < end; row += kRows) {
    Rows r{h,  row, least(kRows, end - row), scratch, scratch + kRows * scores_row, scores_row, round_up(h.width),
           {}, {}};
    block(r, ahead, packed);
  }
}

std::size_t scratch_floats(const AttentionHead& h) { return kRows * (round_up(key_block(h.keys)) + round_up(h.width)); }

std::size_t packed_floats(const AttentionHead& h) {
  return packed_b_floats(h.depth, h.keys) + packed_b_floats(h.keys, h.width);
}

void pack(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  const std::size_t k = panels(h.keys), v = panels(h.width);
  pack_b_avx512(h.k, h.k_row, true, h.depth, h.keys, k * part / parts, k * (part + 1) / parts, packed);
  pack_b_avx512(h.v, h.v_row, false, h.keys, h.width, v * part / parts, v * (part + 1) / parts,
                packed + packed_b_floats(h.depth, h.keys));
}

constexpr std::size_t kAhead = 16;  // keys or values to fetch ahead

/// scores[j] = scale * q k[j].
void dot_products(const AttentionHead& h, const float* q, std::size_t begin, std::size_t count, float* scores) {
  const float* k = h.k + begin * h.k_row;
  std::size_t j = 0;
  for (; j + 4 <= count; j += 4, k += 4 * h.k_row) {
    __m512 sum[4] = {};
    const bool more = j + kAhead + 4 <= count;
    for (std::size_t r = 0; more && r < 4; ++r) fetch(k + (kAhead + r) * h.k_row, h.depth);
    for (std::size_t d = 0; d < h.depth; d += 16) {
      const __mmask16 m = lanes(h.depth - d);
      const __m512 x = _mm512_maskz_loadu_ps(m, q + d);
#pragma GCC unroll 4
      for (std::size_t r = 0; r < 4; ++r) {
        sum[r] = _mm512_fmadd_ps(x, _mm512_maskz_loadu_ps(m, k + r * h.k_row + d), sum[r]);
      }
    }
    _mm_storeu_ps(scores + j, _mm_mul_ps(sums4(sum), _mm_set1_ps(h.scale)));
  }
  for (; j < count; ++j, k += h.k_row) {
    __m512 sum = _mm512_setzero_ps();
    for (std::size_t d = 0; d < h.depth; d += 16) {
      const __mmask16 m = lanes(h.depth - d);
      sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, q + d), _mm512_maskz_loadu_ps(m, k + d), sum);
    }
    scores[j] = _mm512_reduce_add_ps(sum) * h.scale;
  }
}

/// values[0 .. 64) = weights v, at most 64 columns; two sums per column hide the latency.
MODELFLOW_INLINE void weighted_sum(const float* weights, const float* v, std::size_t v_row, std::size_t count,
                                   std::size_t columns, float* values) {
  __m512 sum[2][4] = {};
  const __mmask16 m[4] = {lanes(columns), columns > 16 ? lanes(columns - 16) : __mmask16{0},
                          columns > 32 ? lanes(columns - 32) : __mmask16{0},
                          columns > 48 ? lanes(columns - 48) : __mmask16{0}};
  std::size_t j = 0;
  const auto add = [&](int into) __attribute__((always_inline)) {
    if (j + kAhead < count) fetch(v + kAhead * v_row, columns);
    const __m512 w = _mm512_set1_ps(weights[j]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      sum[into][i] = _mm512_fmadd_ps(w, _mm512_maskz_loadu_ps(m[i], v + 16 * i), sum[into][i]);
    }
    v += v_row;
    ++j;
  };
  while (j + 2 <= count) {
    add(0);
    add(1);
  }
  if (j < count) add(0);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) _mm512_mask_storeu_ps(values + 16 * i, m[i], _mm512_add_ps(sum[0][i], sum[1][i]));
}

AttentionPart stream(const AttentionHead& h, std::size_t row, std::size_t begin, std::size_t end, float* values) {
  const ExpOfNegative exp;
  alignas(64) float scores[kAttentionStream];
  const std::size_t count = end - begin;
  dot_products(h, h.q + row * h.q_row, begin, count, scores);
  AttentionPart part;
  const float* mask = h.mask ? h.mask + row * h.mask_row + begin * h.mask_column : nullptr;
  part.max = _mm512_reduce_max_ps(largest(scores, count, mask, h.mask_column));
  part.sum = _mm512_reduce_add_ps(exponentials(scores, count, part.max, exp));
  for (std::size_t c = 0; c < h.width; c += 64) {
    weighted_sum(scores, h.v + begin * h.v_row + c, h.v_row, count, least(h.width - c, 64), values + c);
  }
  return part;
}

}  // namespace

const AttentionCode attention_code_avx512 = {kRows, packed_floats, pack, scratch_floats, run_rows, stream};

}  // namespace modelflow::cpu
