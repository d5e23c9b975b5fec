// Attention of bfloat16 on AMX.
#include <immintrin.h>

#include <cstring>

#include "backends/cpu/attention/blocks.h"
#include "backends/cpu/frame/arena.h"
#include "backends/cpu/gemm/bf16_int8_amx.h"
#include "backends/cpu/gemm/round_amx.h"

// Both products are those of MatMulBf16.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kRows = 2 * kTileBlock;

void round_rows(const float* from, std::size_t step, std::size_t rows, std::size_t n, std::uint16_t* to) {
  for (std::size_t r = 0; r < rows; ++r, from += step, to += n) {
    if (r + kFetchedRows < rows) fetch(from + kFetchedRows * step, n);
    round_numbers(from, n, reinterpret_cast<std::byte*>(to));
  }
}

/// Keys [depth, keys] and values [keys, width] of one head as pack_b_bf16_amx packs them.
struct Operands {
  std::uint16_t *keys, *values;
  std::uint16_t *key_rows, *value_rows;  ///< [keys, depth], [keys, width]: on the way to being packed
  std::size_t floats;                    ///< that all of it takes

  Operands(const AttentionHead& h, float* packed) {
    Arena memory(packed);
    keys = memory.take<std::uint16_t>(packed_b_bf16_amx_bytes(h.depth, h.keys) / 2);
    values = memory.take<std::uint16_t>(packed_b_bf16_amx_bytes(h.keys, h.width) / 2);
    key_rows = memory.take<std::uint16_t>(h.keys * h.depth);
    value_rows = memory.take<std::uint16_t>(h.keys * h.width);
    floats = memory.floats();
  }

  void pack_keys(const AttentionHead& h) const {
    round_rows(h.k, h.k_row, h.keys, h.depth, key_rows);
    pack_b_bf16_amx(key_rows, true, h.depth, h.keys, keys);
  }
  void pack_values(const AttentionHead& h) const {
    round_rows(h.v, h.v_row, h.keys, h.width, value_rows);
    pack_b_bf16_amx(value_rows, false, h.keys, h.width, values);
  }
};

/// A block of rows on its way.
struct Block {
  const AttentionHead& head;
  std::size_t first, count;
  TilePanels queries, weights;
  float *q, *scores, *values, *sums;
  std::byte *q_tiles, *weight_tiles;
  std::size_t floats;

  Block(const AttentionHead& h, std::size_t begin, std::size_t n, float* scratch)
      : head(h), first(begin), count(n), queries{n, 2 * h.depth}, weights{n, 2 * h.keys} {
    Arena memory(scratch);
    q = memory.take<float>(count * h.depth);
    scores = memory.take<float>(count * h.keys);
    values = memory.take<float>(count * h.width);
    sums = memory.take<float>(count);
    q_tiles = memory.take<std::byte>(queries.bytes());
    weight_tiles = memory.take<std::byte>(weights.bytes());
    floats = memory.floats();
  }
};

/// exp(s - top) of the first `seen` numbers in bfloat16, zeros behind them up to `whole` bytes; gives their sum.
MODELFLOW_INLINE float exponentials_bf16(const float* s, std::size_t seen, float top, std::size_t whole,
                                         std::byte* to) {
  const ExpOfNegative exp;
  const __m512 base = _mm512_set1_ps(top);
  __m512 sum = _mm512_setzero_ps();
  for (std::size_t j = 0; j < seen; j += 16) {
    const __mmask16 m = first_lanes(seen - j);
    const __m512 e = _mm512_maskz_mov_ps(m, exp(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, s + j), base)));
    const auto kept = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(e));
    sum = _mm512_add_ps(sum, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(kept), 16)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 2 * j), kept);  // rows of tiles have whole lines
  }
  const std::size_t written = (seen + 15) / 16 * 32;
  if (written < whole) std::memset(to + written, 0, whole - written);
  return _mm512_reduce_add_ps(sum);
}

/// True where keys that are left out matter.
bool softmax(const Block& b) {
  const AttentionHead& h = b.head;
  bool matters = false;
  const std::size_t row_bytes = tile_row(b.weights.row), whole = tile_steps(b.weights.row) * kTileBytes;
  for (std::size_t panel = 0; panel < b.weights.count(); ++panel) {
    std::byte* to = b.weight_tiles + b.weights.offset(panel);
    for (std::size_t i = b.weights.begin(panel); i < b.weights.begin(panel + 1); ++i, to += row_bytes) {
      float* s = b.scores + i * h.keys;
      const std::size_t seen = h.seen(b.first + i);
      if (h.cap != 0) soft_cap(s, seen, h.cap, ExpOfNegative());
      const std::size_t row = b.first + i;
      const float top = _mm512_reduce_max_ps(largest_left(h, h.mask.from(row, 0), row, 0, seen, s));
      matters = matters || hidden_matters(h, row, top, mask_top);
      b.sums[i] = exponentials_bf16(s, seen, top == kNothing ? 0 : top, whole, to);
    }
  }
  return matters;
}

/// y = values / sums; rows that have no softmax are 0 where NaN is guarded against.
void average(const Block& b) {
  const AttentionHead& h = b.head;
  for (std::size_t i = 0; i < b.count; ++i) {
    float* y = h.y + (b.first + i) * h.y_row;
    const __mmask16 kept = h.guard && !(b.sums[i] > 0) ? __mmask16{0} : __mmask16{0xffff};
    const __m512 share = _mm512_set1_ps(1 / b.sums[i]);
    for (std::size_t c = 0; c < h.width; c += 16) {
      const __mmask16 m = first_lanes(h.width - c);
      const __m512 sums = _mm512_maskz_loadu_ps(m, b.values + i * h.width + c);
      _mm512_mask_storeu_ps(y + c, m, _mm512_maskz_mul_ps(kept, sums, share));
    }
  }
}

/// The first `seen` columns of y [rows, n] = a b.
void multiply(const TilePanels& rows, const std::byte* a, const std::uint16_t* b, std::size_t n, std::size_t seen,
              float* y) {
  TileGemm product{rows, n, a, reinterpret_cast<const std::byte*>(b), {}, nullptr};
  product.out.c = y;
  product.out.n = n;
  gemm_bf16_amx(product, 0, rows.count(), 0, seen);
}

bool run(const Block& b, const Operands& operands) {
  const AttentionHead& h = b.head;
  const __m512 scale = _mm512_set1_ps(h.scale);
  for (std::size_t i = 0; i < b.count; ++i) {
    const float* row = h.q + (b.first + i) * h.q_row;
    if (i + kFetchedRows < b.count) fetch(row + kFetchedRows * h.q_row, h.depth);
    for (std::size_t c = 0; c < h.depth; c += 16) {
      const __mmask16 m = first_lanes(h.depth - c);
      _mm512_mask_storeu_ps(b.q + i * h.depth + c, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(m, row + c), scale));
    }
  }
  copy_rows_amx(b.queries, b.q, h.depth, 0, b.queries.count(), b.q_tiles);
  const std::size_t seen = h.seen(b.first + b.count - 1);
  multiply(b.queries, b.q_tiles, operands.keys, h.keys, seen, b.scores);
  if (softmax(b)) return true;
  multiply(b.weights, b.weight_tiles, operands.values, h.width, h.width, b.values);
  average(b);
  return false;
}

}  // namespace

const AttentionCode attention_bf16_code_amx = AttentionBlocks<Operands, Block, kRows>::code(SIZE_MAX);

}  // namespace modelflow::cpu
