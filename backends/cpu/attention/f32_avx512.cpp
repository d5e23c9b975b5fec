// Attention of float32 on AVX-512: blocks of rows against blocks of packed keys and values.
#include "backends/cpu/attention/softmax_avx512.h"
#include "backends/cpu/gemm/f32.h"

// A block of rows against all keys it sees, a block of keys at a time: scores, exponentials and the product with the
// values stay in L2, most of them in L1. Both products are f32_avx512.gemm on packed keys and values.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kRows = 48;    // eight tiles of six: keys come from L2 once for all of them
constexpr std::size_t kKeys = 256;   // keys per block when there are more than kWhole
constexpr std::size_t kWhole = 384;  // up to here one block: no rescaling

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
    const std::size_t end = h.seen(r.first + i);
    return end <= key ? 0 : least(end - key, keys);
  };
  for (std::size_t begin = 0; begin < r.count; begin += 4) {  // four rows: their chains of instructions overlap
    const std::size_t end = least(begin + 4, r.count);
    __m512 lanes_of[4];
    for (__m512& lanes : lanes_of) lanes = _mm512_set1_ps(kNothing);
    for (std::size_t i = begin; i < end; ++i) {
      if (key == 0) ahead.row(h, r.first + i);
      if (h.cap != 0) soft_cap(r.scores + i * r.scores_row, seen(i), h.cap, exp);
      const std::size_t row = r.first + i;
      if (h.grid) add_grid(h.grid, row, key, keys, r.scores + i * r.scores_row);
      lanes_of[i - begin] = largest_left(h, h.mask.from(row, key), row, key, seen(i), r.scores + i * r.scores_row);
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
      const __mmask16 m = first_lanes(h.width - j), kept = zero ? __mmask16{0} : m;
      _mm512_mask_storeu_ps(y + j, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(kept, r.values + i * r.values_row + j), sum));
    }
  }
}

bool hidden_matters(const Rows& r) {
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
  product.n = h.width;
  product.a = r.scores;
  product.lda = r.scores_row;
  product.ldb = f32_avx512.panel;
  product.panel = f32_avx512.panel * h.keys;
  product.c = r.values;
  product.ldc = product.ldr = r.values_row;
  for (std::size_t key = 0; key < seen; key += step) {
    const std::size_t count = least(step, seen - key);
    scores.n = count;
    scores.b = keys + key * h.depth;  // key is a multiple of f32_avx512.panel
    f32_avx512.gemm(scores, 0, r.count, 0, count, nullptr);
    softmax(r, ahead, key, count);
    product.k = count;
    product.b = values + key * f32_avx512.panel;
    product.residual = key ? r.values : nullptr;
    f32_avx512.gemm(product, 0, r.count, 0, h.width, nullptr);
  }
}

void run_rows(const AttentionHead& h, const AttentionHead* next, const float* packed, std::size_t begin,
              std::size_t end, float* scratch) {
  const Ahead ahead(h, next);
  const std::size_t scores_row = round_up(key_block(h.keys));
  for (std::size_t row = begin; row < end; row += kRows) {
    Rows r{h,  row, least(kRows, end - row), scratch, scratch + kRows * scores_row, scores_row, round_up(h.width),
           {}, {}};
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

std::size_t scratch_floats(const AttentionHead& h) { return kRows * (round_up(key_block(h.keys)) + round_up(h.width)); }

std::size_t packed_floats(const AttentionHead& h) {
  return f32_avx512.packed_floats(h.depth, h.keys) + f32_avx512.packed_floats(h.keys, h.width);
}

void pack(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
  const std::size_t k = panels(h.keys), v = panels(h.width);
  f32_avx512.pack_b(h.k, h.k_row, true, h.depth, h.keys, k * part / parts, k * (part + 1) / parts, packed);
  f32_avx512.pack_b(h.v, h.v_row, false, h.keys, h.width, v * part / parts, v * (part + 1) / parts,
                    packed + f32_avx512.packed_floats(h.depth, h.keys));
}

}  // namespace

const AttentionCode attention_code_avx512 = {
    kRows, packed_floats, pack, scratch_floats, run_rows, attention_stream_avx512, largest_size, SIZE_MAX, true};

}  // namespace modelflow::cpu
