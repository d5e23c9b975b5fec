// Attention of float32 on AVX-512: blocks of rows against blocks of packed keys and values.
#include "backends/cpu/attention/narrow_values.h"
#include "backends/cpu/attention/score_rows_avx512.h"

// A block of rows against all keys it sees, a block of keys at a time: scores, exponentials and the product with the
// values stay in L2, most of them in L1. Both products are f32_avx512.gemm on packed keys and values.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kRows = 48;      // eight tiles of six: keys come from L2 once for all of them
constexpr std::size_t kMostRows = 72;  // so that a few rows more than kRows are no block of their own
constexpr std::size_t kKeys = 256;     // keys per block when there are more than kWhole
constexpr std::size_t kWhole = 384;    // up to here one block: no rescaling

std::size_t panels(std::size_t n) { return f32_avx512.panels(n); }
std::size_t key_block(std::size_t keys) { return keys <= kWhole ? keys : kKeys; }

/// Whether all that acts on scores is a mask of numbers, one for each key, or nothing.
bool only_numbers(const AttentionHead& h) {
  return !h.causal.on && h.cap == 0 && !h.grid && !h.mask.flags && (!h.mask.numbers || h.mask.stride.column == 1);
}

/// Heads whose scores stay in L1 until they have met the values, a few rows at a time: every block passes over all keys
/// and values, so they are no more than a small L2 gives beside them. Zen 5, 343 keys: heads of 4 and 8 take 0.86 to
/// 0.95 of the time, and a mask of every window comes from memory in step with the work; 64 keys and less gain nothing.
bool in_l1(const AttentionHead& h) {
  return narrow(h) && only_numbers(h) && h.keys > kShort && h.keys <= kWhole && h.keys * h.depth <= 8192;
}

/// So many that their scores take 16 KiB, half of the smallest L1, but two tiles at least.
std::size_t rows_in_l1(const AttentionHead& h) {
  const std::size_t rows = 4096 / h.keys;
  return rows < 12 ? 12 : least(rows, kRows);
}

/// Of a row of scores; in_l1 writes whole panels of them.
std::size_t scores_floats(const AttentionHead& h) {
  return in_l1(h) ? panels(h.keys) * f32_avx512.panel : whole_registers(key_block(h.keys));
}

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

/// How many of the keys [key, key + keys) a row computes.
std::size_t seen_from(const AttentionHead& h, std::size_t row, std::size_t key, std::size_t keys) {
  const std::size_t end = h.seen(row);
  return end <= key ? 0 : least(end - key, keys);
}

/// Lets all that may act on the scores of a row act; those of keys that it does not see become nothing.
void act(const AttentionHead& h, std::size_t row, std::size_t key, std::size_t keys, float* s) {
  const std::size_t n = seen_from(h, row, key, keys);
  if (h.cap != 0) soft_cap(s, n, h.cap, ExpOfNegative());
  if (h.grid) add_grid(h.grid, row, key, n, s);
  if (h.mask || h.whole) largest_left(h, h.mask.from(row, key), row, key, n, s);
  for (std::size_t j = n / 16 * 16; j < keys; j += 16) {
    const __mmask16 m = j < n ? tail_mask(n - j) : __mmask16{0};
    _mm512_storeu_ps(s + j, _mm512_mask_mov_ps(_mm512_set1_ps(kNothing), m, _mm512_loadu_ps(s + j)));
  }
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
    if (acts) scores.n = seen_from(h, r.first + i + rows - 1, key, keys);  // what the last of these rows computes
    for (std::size_t row = r.first + i; row < r.first + i + rows; ++row) {
      if (key == 0) ahead.row(h, row);
      if (acts) act(h, row, key, scores.n, scores.at + (row - r.first - i) * scores.row);
    }
    float* sum = key == 0 ? r.sum + i : sums;
    float old[4];
    for (std::size_t k = 0; k < rows; ++k) old[k] = r.max[i + k];
    rows == 4 ? exponentials_of<4, Numbers>(scores, exp, r.max + i, sum)
              : exponentials_of<1, Numbers>(scores, exp, r.max + i, sum);
    for (std::size_t j = whole_registers(scores.n); acts && j < keys; j += 16)
      for (std::size_t k = 0; k < rows; ++k) _mm512_storeu_ps(scores.at + k * scores.row + j, _mm512_setzero_ps());
    if (key != 0)
      for (std::size_t k = 0; k < rows; ++k) r.gather(i + k, old[k], sums[k], exp);
    i += rows;
    scores.at += rows * scores.row;
    if (Numbers) scores.numbers += rows * scores.numbers_row;
  }
}

void softmax(Rows& r, const Ahead& ahead, std::size_t key, std::size_t keys) {
  const bool acts = !only_numbers(r.head);
  if (!acts && r.head.mask.numbers) return softmax<true>(r, ahead, key, keys, false);
  softmax<false>(r, ahead, key, keys, acts);
}

// No part of block: that would be slower for it (GCC 12, a few keys: 3 %).
template <bool Numbers>
__attribute__((noinline)) void block_in_l1(Rows& r, const Ahead& ahead, const float* packed) {
  const ExpOfNegative exp;
  const AttentionHead& h = r.head;
  alignas(64) float tops[kMostRows * 16];
  ScoreTile t{h.q + r.first * h.q_row,
              packed,
              h.q_row,
              h.depth,
              f32_avx512.panel * h.depth,
              h.scale,
              {r.scores, r.scores_row, h.keys, nullptr, 0},
              tops};
  if (Numbers) t.scores.numbers = h.mask.from(r.first, 0).numbers, t.scores.numbers_row = h.mask.stride.row;
  const std::size_t tiles = (r.count + 5) / 6;
  for (std::size_t i = 0; i < tiles; ++i) {
    const std::size_t rows = r.count * (i + 1) / tiles - r.count * i / tiles;
    scores_of<Numbers>(t, rows);
    t.q += rows * h.q_row;
    t.scores.at += rows * r.scores_row;
    t.tops += rows * 16;
    if (Numbers) t.scores.numbers += rows * t.scores.numbers_row;
  }
  for (std::size_t i = 0, rows; i < r.count; i += rows) {
    rows = r.count - i < 4 ? 1 : 4;
    __m512 lanes[4];
    for (std::size_t k = 0; k < 4; ++k)
      lanes[k] = k < rows ? _mm512_load_ps(tops + (i + k) * 16) : _mm512_set1_ps(kNothing);
    for (std::size_t k = 0; k < rows; ++k) ahead.row(h, r.first + i + k), r.max[i + k] = kNothing;
    float* s = r.scores + i * r.scores_row;
    rows == 4 ? powers_of<4>(s, r.scores_row, h.keys, lanes, exp, r.max + i, r.sum + i)
              : powers_of<1>(s, r.scores_row, h.keys, lanes, exp, r.max + i, r.sum + i);
  }
  multiply_narrow({r.scores, r.scores_row, packed + f32_avx512.packed_floats(h.depth, h.keys), whole_registers(h.keys),
                   whole_registers(h.keys), h.width, r.values, r.values_row, false},
                  r.count);
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
  product.n = whole_registers(h.width);
  product.a = r.scores;
  product.lda = r.scores_row;
  product.ldb = f32_avx512.panel;
  product.panel = f32_avx512.panel * h.keys;
  product.c = r.values;
  product.ldc = product.ldr = r.values_row;
  for (std::size_t key = 0; key < seen; key += step) {
    const std::size_t count = least(step, seen - key);
    scores.n = whole_registers(count);  // packed keys and rows of scores have as many
    scores.b = keys + key * h.depth;    // key is a multiple of f32_avx512.panel
    f32_avx512.gemm(scores, 0, r.count, 0, scores.n, nullptr);
    softmax(r, ahead, key, count);
    if (narrow(h)) {
      multiply_narrow({r.scores, r.scores_row, values + key, whole_registers(h.keys), whole_registers(count), h.width,
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
  const std::size_t scores_row = scores_floats(h);
  const bool near = in_l1(h);
  const std::size_t all = end - begin, few = near ? rows_in_l1(h) : kRows;
  // A causal block computes what its last row sees: the more rows, the more of it is hidden from the first.
  const std::size_t blocks = h.causal.on ? (all + few - 1) / few : all < few * 3 / 2 ? 1 : (all + few / 2) / few;
  for (std::size_t i = 0; i < blocks; ++i) {  // of about the same height
    const std::size_t row = begin + all * i / blocks, count = begin + all * (i + 1) / blocks - row;
    Rows r{h, row, count, scratch, scratch + kMostRows * scores_row, scores_row, whole_registers(h.width), {}, {}};
    if (near) {
      h.mask.numbers ? block_in_l1<true>(r, ahead, packed) : block_in_l1<false>(r, ahead, packed);
      finish(r);
      continue;
    }
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

std::size_t scratch_floats(const AttentionHead& h) { return kMostRows * (scores_floats(h) + whole_registers(h.width)); }

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
