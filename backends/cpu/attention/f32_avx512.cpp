// Attention of float32 on AVX-512: blocks of rows against blocks of packed keys and values.
#include "backends/cpu/attention/narrow_values.h"
#include "backends/cpu/attention/softmax_avx512.h"
#include "backends/cpu/gemm/f32.h"

// A block of rows against all keys it sees, a block of keys at a time: scores, exponentials and the product with the
// values stay in L2, most of them in L1. Both products are f32_avx512.gemm on packed keys and values.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kRows = 48;      // eight tiles of six: keys come from L2 once for all of them
constexpr std::size_t kMostRows = 72;  // so that a few rows more than kRows are no block of their own
constexpr std::size_t kKeys = 256;     // keys per block when there are more than kWhole
constexpr std::size_t kWhole = 384;    // up to here one block: no rescaling

std::size_t panels(std::size_t n) { return f32_avx512.panels(n); }
std::size_t round_up(std::size_t n) { return (n + 15) / 16 * 16; }
std::size_t key_block(std::size_t keys) { return keys <= kWhole ? keys : kKeys; }

/// What to bring into cache while a row is in work: the rows of y, and the operands of the head that comes next. They
/// lie far apart, in many pages, and would otherwise cost as much as a fifth of the time.
struct Ahead {
  const AttentionHead* next = nullptr;
  std::size_t keys = 0;  // of the next head, per row

  Ahead(const AttentionHead& h, const AttentionHead* after) {
    if (!after || h.keys * (h.depth + h.width) * sizeof(float) > h.near) return;
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
  float max[kMostRows], sum[kMostRows];  // kMostRows is a multiple of 4

  /// Adds a block of keys to row `i`, whose largest was `old`: what was gathered before is scaled to the new one.
  MODELFLOW_INLINE void gather(std::size_t i, float old, float new_sum, const ExpOfNegative& exp) {
    const float new_max = max[i];
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

/// Whether all that acts on scores is a mask of numbers, one for each key, or nothing.
bool only_numbers(const AttentionHead& h) {
  return !h.causal.on && h.cap == 0 && !h.grid && !h.mask.flags && (!h.mask.numbers || h.mask.stride.column == 1);
}

/// Lets all that may act on the scores of a row act; those of keys that it does not see become nothing.
void act(const AttentionHead& h, std::size_t row, std::size_t key, std::size_t keys, float* s) {
  const std::size_t end = h.seen(row), n = end <= key ? 0 : least(end - key, keys);
  if (h.cap != 0) soft_cap(s, n, h.cap, ExpOfNegative());
  if (h.grid) add_grid(h.grid, row, key, n, s);
  largest_left(h, h.mask.from(row, key), row, key, n, s);
  for (std::size_t j = n / 16 * 16; j < keys; j += 16) {
    const __mmask16 m = j < n ? tail_mask(n - j) : __mmask16{0};
    _mm512_storeu_ps(s + j, _mm512_mask_mov_ps(_mm512_set1_ps(kNothing), m, _mm512_loadu_ps(s + j)));
  }
}

constexpr std::size_t kShort = 64;  // keys: rows of a mask that lie so close that four of them are one stream

/// Scores of a few rows, `row` floats apart, and the numbers of their mask, where there is one.
struct Scores {
  float* at;
  std::size_t row, n;
  const float* numbers;
  std::size_t numbers_row;
};

/// Scores of 4 rows (or 1) become exponentials, up to the end of their last register, where they are 0. `max`: the
/// largest that was found before, and now. Whole registers are stored: what is read soon after a part of a register was
/// written waits for it. Rows side by side: their chains of instructions overlap.
template <std::size_t R, bool Numbers>
MODELFLOW_INLINE void exponentials_of(const Scores& scores, const ExpOfNegative& exp, float* max, float* sum) {
  const __m512 nothing = _mm512_set1_ps(kNothing);
  float* const s = scores.at;
  const float* const numbers = scores.numbers;
  const std::size_t n = scores.n, row = scores.row, numbers_row = scores.numbers_row;
  __m512 lanes[4] = {nothing, nothing, nothing, nothing};
  const auto take = [&](std::size_t r, std::size_t j) __attribute__((always_inline)) {
    const __mmask16 m = first_lanes(n - j);
    __m512 x = _mm512_mask_loadu_ps(nothing, m, s + r * row + j);
    if (Numbers) {
      x = _mm512_mask_add_ps(x, m, x, _mm512_maskz_loadu_ps(m, numbers + r * numbers_row + j));
      __builtin_prefetch(numbers + (r + kFetchedRows) * numbers_row + j);
    }
    if (Numbers || n % 16 != 0) _mm512_storeu_ps(s + r * row + j, x);
    lanes[r] = _mm512_max_ps(lanes[r], x);
  };
  if (!Numbers || n <= kShort) {
    for (std::size_t j = 0; j < n; j += 16) {
#pragma GCC unroll 4
      for (std::size_t r = 0; r < R; ++r) take(r, j);
    }
  } else {  // a mask is read as it lies
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t j = 0; j < n; j += 16) take(r, j);
    }
  }
  __m128 top = R == 4 ? _mm_loadu_ps(max) : _mm_load_ss(max);
  top = _mm_max_ps(largest4(lanes), top);
  R == 4 ? _mm_storeu_ps(max, top) : _mm_store_ss(max, top);
  top = _mm_mask_mov_ps(top, _mm_cmp_ps_mask(top, _mm_set1_ps(kNothing), _CMP_EQ_OQ), _mm_setzero_ps());
  const __m512 wide = _mm512_broadcast_f32x4(top);
  const __m512 base[4] = {_mm512_permute_ps(wide, 0), _mm512_permute_ps(wide, 0x55), _mm512_permute_ps(wide, 0xaa),
                          _mm512_permute_ps(wide, 0xff)};
  for (__m512& part : lanes) part = _mm512_setzero_ps();
  for (std::size_t j = 0; j < n; j += 16) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      const __m512 e = exp(_mm512_sub_ps(_mm512_loadu_ps(s + r * row + j), base[r]));
      _mm512_storeu_ps(s + r * row + j, e);
      lanes[r] = _mm512_add_ps(lanes[r], e);
    }
  }
  R == 4 ? _mm_storeu_ps(sum, sums4(lanes)) : _mm_store_ss(sum, sums4(lanes));
}

/// Scores of the keys [key, key + keys) become exponentials.
template <bool Numbers>
void softmax(Rows& r, const Ahead& ahead, std::size_t key, std::size_t keys, bool acts) {
  const ExpOfNegative exp;
  const AttentionHead& h = r.head;
  Scores scores{r.scores, r.scores_row, keys, nullptr, 0};
  if (Numbers) scores.numbers = h.mask.from(r.first, key).numbers, scores.numbers_row = h.mask.stride.row;
  float sums[4];
  for (std::size_t i = 0; i < r.count;) {
    const std::size_t rows = r.count - i < 4 ? 1 : 4;
    for (std::size_t row = r.first + i; row < r.first + i + rows; ++row) {
      if (key == 0) ahead.row(h, row);
      if (acts) act(h, row, key, keys, scores.at + (row - r.first - i) * scores.row);
    }
    float* sum = key == 0 ? r.sum + i : sums;
    float old[4];
    for (std::size_t k = 0; k < 4; ++k) old[k] = r.max[i + k];
    rows == 4 ? exponentials_of<4, Numbers>(scores, exp, r.max + i, sum)
              : exponentials_of<1, Numbers>(scores, exp, r.max + i, sum);
    if (key != 0)
      for (std::size_t k = 0; k < rows; ++k) r.gather(i + k, old[k], sums[k], exp);
    i += rows;
    scores.at += rows * scores.row;
    if (Numbers) scores.numbers += rows * scores.numbers_row;
  }
}

void softmax(Rows& r, const Ahead& ahead, std::size_t key, std::size_t keys) {
  const bool acts = !only_numbers(r.head);
  !acts&& r.head.mask.numbers ? softmax<true>(r, ahead, key, keys, false) : softmax<false>(r, ahead, key, keys, acts);
}

/// values / sum into y.
void finish(const Rows& r) {
  const AttentionHead& h = r.head;
  for (std::size_t i = 0; i < r.count; ++i) {
    const bool zero = h.guard && !(r.sum[i] > 0);
    const __m512 sum = _mm512_set1_ps(zero ? 1 : 1 / r.sum[i]);
    float* y = h.y + (r.first + i) * h.y_row;
    for (std::size_t j = 0; j < h.width; j += 16) {
      const __mmask16 m = first_lanes(h.width - j), kept = zero ? __mmask16{0} : m;
      _mm512_mask_storeu_ps(y + j, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(kept, r.values + i * r.values_row + j), sum));
    }
  }
}

bool hidden_matters(const Rows& r) {
  if (!r.head.causal.on) return false;
  for (std::size_t i = 0; i < r.count; ++i)
    if (hidden_matters(r.head, r.first + i, r.max[i], mask_top)) return true;
  return false;
}

void block(Rows& r, const Ahead& ahead, const float* packed) {
  const AttentionHead& h = r.head;
  const float *keys = packed, *values = packed + f32_avx512.packed_floats(h.depth, h.keys);
  const std::size_t seen = h.seen(r.first + r.count - 1), step = key_block(h.keys);
  for (std::size_t i = 0; i < r.count; ++i) {
    r.max[i] = kNothing;
    r.sum[i] = 0;
  }
  Gemm scores;
  scores.m = r.count;
  scores.k = h.depth;
  scores.a = h.q + r.first * h.q_row;
  scores.lda = h.q_row;
  scores.ldb = f32_avx512.panel;
  scores.panel = f32_avx512.panel * h.depth;
  scores.c = r.scores;
  scores.ldc = r.scores_row;
  scores.scale = h.scale;
  Gemm product;
  product.m = r.count;
  product.n = round_up(h.width);
  product.a = r.scores;
  product.lda = r.scores_row;
  product.ldb = f32_avx512.panel;
  product.panel = f32_avx512.panel * h.keys;
  product.c = r.values;
  product.ldc = product.ldr = r.values_row;
  for (std::size_t key = 0; key < seen; key += step) {
    const std::size_t count = least(step, seen - key);
    scores.n = round_up(count);       // packed keys and rows of scores have as many
    scores.b = keys + key * h.depth;  // key is a multiple of f32_avx512.panel
    f32_avx512.gemm(scores, 0, r.count, 0, scores.n, nullptr);
    softmax(r, ahead, key, count);
    if (narrow(h)) {
      multiply_narrow({r.scores, r.scores_row, values + key, whole_registers(h.keys), round_up(count), h.width,
                       r.values, r.values_row, key != 0},
                      r.count);
      continue;
    }
    product.k = count;
    product.b = values + key * f32_avx512.panel;
    product.residual = key ? r.values : nullptr;
    f32_avx512.gemm(product, 0, r.count, 0, product.n, nullptr);
  }
}

void run_rows(const AttentionHead& h, const AttentionHead* next, const float* packed, std::size_t begin,
              std::size_t end, float* scratch) {
  const Ahead ahead(h, next);
  const std::size_t scores_row = round_up(key_block(h.keys));
  const std::size_t all = end - begin, blocks = all < kMostRows ? 1 : (all + kRows / 2) / kRows;
  for (std::size_t i = 0; i < blocks; ++i) {  // of about the same height
    const std::size_t row = begin + all * i / blocks, count = begin + all * (i + 1) / blocks - row;
    Rows r{h, row, count, scratch, scratch + kMostRows * scores_row, scores_row, round_up(h.width), {}, {}};
    block(r, ahead, packed);
    if (hidden_matters(r)) {
      AttentionHead whole = h;
      whole.whole = true;
      Rows again{whole, r.first, r.count, r.scores, r.values, r.scores_row, r.values_row, {}, {}};
      block(again, ahead, packed);
      finish(again);
    } else {
      finish(r);
    }
  }
}

std::size_t scratch_floats(const AttentionHead& h) {
  return kMostRows * (round_up(key_block(h.keys)) + round_up(h.width));
}

std::size_t packed_floats(const AttentionHead& h) {
  return f32_avx512.packed_floats(h.depth, h.keys) +
         (narrow(h) ? narrow_floats(h) : f32_avx512.packed_floats(h.keys, h.width));
}

void pack(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  const std::size_t k = panels(h.keys), v = panels(h.width);
  f32_avx512.pack_b(h.k, h.k_row, true, h.depth, h.keys, k * part / parts, k * (part + 1) / parts, packed);
  if (narrow(h)) return pack_narrow(h, part, parts, packed + f32_avx512.packed_floats(h.depth, h.keys));
  f32_avx512.pack_b(h.v, h.v_row, false, h.keys, h.width, v * part / parts, v * (part + 1) / parts,
                    packed + f32_avx512.packed_floats(h.depth, h.keys));
}

}  // namespace

const AttentionCode attention_code_avx512 = {
    kRows, packed_floats, pack, scratch_floats, run_rows, attention_stream_avx512, largest_size, SIZE_MAX, true};

}  // namespace modelflow::cpu
