// Attention of 8-bit numbers on VNNI.
#include "backends/cpu/gemm/int8_vnni.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/attention/blocks.h"
#include "backends/cpu/frame/arena.h"
#include "backends/cpu/vector/magnitudes_avx512.h"

// Scores, exponentials and the product with the values stay in L2. Both products are those of QMatMul.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kRows = 64;  // five panels

/// The size of the steps of numbers up to `largest`, and its inverse.
struct Unit {
  __m512 unit, inverse;
  explicit Unit(__m512i largest) {  // NaN is the second operand, which stays
    const __m512 range = _mm512_max_ps(_mm512_set1_ps(1e-30f), _mm512_castsi512_ps(largest)),
                 limit = _mm512_set1_ps(127);  // see step_size
    unit = _mm512_add_ps(_mm512_div_ps(range, limit), _mm512_sub_ps(range, range));
    inverse = _mm512_div_ps(limit, range);
  }
};

MODELFLOW_INLINE void store_steps(std::int8_t* to, __mmask16 m, __m512 x, __m512 inverse) {
  _mm_mask_storeu_epi8(to, m, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x, inverse))));
}

/// out [rows, n] = a / units, the rows of a `step` floats apart; units [rows].
void steps_by_row(const float* a, std::size_t step, std::size_t rows, std::size_t n, std::int8_t* out, float* units) {
  for (std::size_t r = 0; r < rows; ++r, a += step, out += n) {
    if (r + kFetchedRows < rows) fetch(a + kFetchedRows * step, n);
    __m512i most = _mm512_setzero_si512();
    for (std::size_t i = 0; i < n; i += 16)
      most = _mm512_max_epi32(most, sizes(_mm512_maskz_loadu_ps(first_lanes(n - i), a + i)));
    const Unit steps(_mm512_set1_epi32(_mm512_reduce_max_epi32(most)));
    units[r] = _mm512_cvtss_f32(steps.unit);
    for (std::size_t i = 0; i < n; i += 16)
      store_steps(out + i, first_lanes(n - i), _mm512_maskz_loadu_ps(first_lanes(n - i), a + i), steps.inverse);
  }
}

/// The same with a step for every column; units [n].
void steps_by_column(const float* a, std::size_t step, std::size_t rows, std::size_t n, std::int8_t* out,
                     float* units) {
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 m = first_lanes(n - i);
    __m512i most = _mm512_setzero_si512();
    for (std::size_t r = 0; r < rows; ++r) {
      if (i == 0 && r + kFetchedRows < rows) fetch(a + (r + kFetchedRows) * step, n);
      most = _mm512_max_epi32(most, sizes(_mm512_maskz_loadu_ps(m, a + r * step + i)));
    }
    const Unit steps(most);
    _mm512_mask_storeu_ps(units + i, m, steps.unit);
    for (std::size_t r = 0; r < rows; ++r)
      store_steps(out + r * n + i, m, _mm512_maskz_loadu_ps(m, a + r * step + i), steps.inverse);
  }
}

/// Keys [depth, keys] and values [keys, width] of one head as pack_b_vnni packs them.
struct StepOperands {
  std::byte *keys, *values;
  float *key_units, *value_units;        ///< [keys], [width]: the size of their steps
  std::int8_t *key_steps, *value_steps;  ///< [keys, depth], [keys, width]: on the way to being packed
  std::size_t floats;                    ///< that all of it takes

  StepOperands(const AttentionHead& h, float* packed) {
    Arena memory(packed);
    keys = memory.take<std::byte>(packed_b_vnni_bytes(vnni_depth(h.depth), h.keys));
    values = memory.take<std::byte>(packed_b_vnni_bytes(vnni_depth(h.keys), h.width));
    key_units = memory.take<float>(h.keys);
    value_units = memory.take<float>(h.width);
    key_steps = memory.take<std::int8_t>(h.keys * h.depth);
    value_steps = memory.take<std::int8_t>(h.keys * h.width);
    floats = memory.floats();
  }

  void pack_keys(const AttentionHead& h) const {
    steps_by_row(h.k, h.k_row, h.keys, h.depth, key_steps, key_units);
    pack_b_vnni(key_steps, true, h.depth, vnni_depth(h.depth), h.keys, keys);
  }
  void pack_values(const AttentionHead& h) const {
    steps_by_column(h.v, h.v_row, h.keys, h.width, value_steps, value_units);
    pack_b_vnni(value_steps, false, h.keys, vnni_depth(h.keys), h.width, values);
  }
};

/// A block of rows on its way.
struct Block {
  const AttentionHead& head;
  std::size_t first, count;
  RowPanels queries, weights;
  float *q, *scores, *values, *units;
  std::uint8_t *q_steps, *weight_steps;
  std::int32_t* sums;
  std::size_t floats;

  Block(const AttentionHead& h, std::size_t begin, std::size_t n, float* scratch)
      : head(h), first(begin), count(n), queries{n, h.depth}, weights{n, h.keys} {
    Arena memory(scratch);
    q = memory.take<float>(count * h.depth);
    scores = memory.take<float>(count * h.keys);
    values = memory.take<float>(count * h.width);
    units = memory.take<float>(count);
    q_steps = memory.take<std::uint8_t>(queries.bytes());
    weight_steps = memory.take<std::uint8_t>(weights.bytes());
    sums = memory.take<std::int32_t>(count);
    floats = memory.floats();
  }
};

/// Scores to the steps of their exponentials, and what the sum of those divides by; true where keys that are left out
/// matter.
bool softmax(const Block& b) {
  const AttentionHead& h = b.head;
  for (std::size_t i = 0; i < b.count; ++i) {
    float* s = b.scores + i * h.keys;
    const std::size_t seen = h.seen(b.first + i);
    if (h.cap != 0) soft_cap(s, seen, h.cap, ExpOfNegative());
    const std::size_t row = b.first + i;
    if (h.mask || h.causal.on) {
      const __m512 top = largest_left(h, h.mask.from(row, 0), row, 0, seen, s);
      if (hidden_matters(h, row, h.causal.on ? _mm512_reduce_max_ps(top) : 0, mask_top)) return true;
    }
    std::fill(s + seen, s + h.keys, kNothing);
  }
  exponentials_vnni(b.weights, b.scores, 0, b.weights.count(), {b.weight_steps, b.units, b.sums});
  for (std::size_t i = 0; i < b.count; ++i) {
    const float share = b.units[i] > 0 ? 1 / static_cast<float>(b.sums[i]) : b.units[i];  // a row that has no softmax
    b.units[i] = h.guard && !(b.sums[i] > 0 && share > 0) ? 0 : share;
  }
  return false;
}

bool run(const Block& b, const StepOperands& operands) {
  const AttentionHead& h = b.head;
  for (std::size_t i = 0; i < b.count; ++i) {
    if (i + kFetchedRows < b.count) fetch(h.q + (b.first + i + kFetchedRows) * h.q_row, h.depth);
    std::memcpy(b.q + i * h.depth, h.q + (b.first + i) * h.q_row, h.depth * sizeof(float));
  }
  quantize_rows_vnni(b.queries, b.q, 0, b.queries.count(), {b.q_steps, b.units, nullptr});
  for (std::size_t i = 0; i < b.count; ++i) b.units[i] *= h.scale;
  VnniGemm scores;
  scores.rows = b.queries;
  scores.n = h.keys;
  scores.a = b.q_steps;
  scores.zero_point = 128;
  scores.b = operands.keys;
  scores.row_scale = b.units;
  scores.column_scale = operands.key_units;
  scores.out = {b.scores, h.keys, nullptr, nullptr, {}, {}};
  gemm_vnni(scores, 0, b.queries.count(), 0, h.seen(b.first + b.count - 1));
  if (softmax(b)) return true;
  VnniGemm product;
  product.rows = b.weights;
  product.n = h.width;
  product.a = b.weight_steps;
  product.b = operands.values;
  product.row_scale = b.units;
  product.column_scale = operands.value_units;
  product.out = {b.values, h.width, nullptr, nullptr, {}, {}};
  gemm_vnni(product, 0, b.weights.count(), 0, h.width);
  for (std::size_t i = 0; i < b.count; ++i)
    std::memcpy(h.y + (b.first + i) * h.y_row, b.values + i * h.width, h.width * sizeof(float));
  return false;
}

}  // namespace

const AttentionCode qattention_code_vnni = AttentionBlocks<StepOperands, Block, kRows>::code(kMostStepKeys);

}  // namespace modelflow::cpu
