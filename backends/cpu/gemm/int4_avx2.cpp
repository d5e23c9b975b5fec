// Matrix products by weights of 4 bits on AVX2 and on AVX-VNNI: blocks of k are summed in integers, and the blocks in
// float32.
#include "backends/cpu/frame/int8_rounding.h"
#include "backends/cpu/gemm/epilogue_loops.h"
#include "backends/cpu/gemm/int4.h"
#include "backends/cpu/vector/bytes.h"
#include "backends/cpu/vector/magnitudes.h"
#include "backends/cpu/vector/words.h"

namespace modelflow::cpu {
namespace {

/// Rows of a tile, and the columns of it: half a panel in two registers.
constexpr std::size_t kRows = 4, kColumns = 2 * kLanes;
static_assert(2 * kColumns == kPanel4);

MODELFLOW_INLINE __m256i raw(Ints x) { return reinterpret_cast<__m256i>(x); }

// Of a kind of sums: over how many steps of k they do not overflow; sum += the products of four weights, 0 to 15, and
// four steps of A; the sum in 32 bits.

/// Pairs in 16 bits: 8 x 2 x 15 x 128 is less than 2^15.
struct PairSums {
  static constexpr std::size_t kMost = 32;
  static MODELFLOW_INLINE void add(Ints& sum, Ints weights, Ints a) {
    sum = reinterpret_cast<Ints>(_mm256_add_epi16(raw(sum), _mm256_maddubs_epi16(raw(weights), raw(a))));
  }
  static MODELFLOW_INLINE Ints wide(Ints sum) {
    return reinterpret_cast<Ints>(_mm256_madd_epi16(raw(sum), _mm256_set1_epi16(1)));
  }
};

/// Only where the machine has AVX-VNNI.
struct QuadSums {
  static constexpr std::size_t kMost = SIZE_MAX;
  static MODELFLOW_INLINE void add(Ints& sum, Ints weights, Ints a) { QuadWords::add(sum, weights, a); }
  static MODELFLOW_INLINE Ints wide(Ints sum) { return sum; }
};

struct Tile {
  const std::int8_t* a;
  std::size_t lda;
  const BlockSteps* steps;  ///< of the first row
  std::size_t blocks, block;
  const std::byte* b;  ///< of the half panel: its scales and its weights both begin 64 bytes behind those of the first
  bool zeros;
  float* out;  ///< [rows][kColumns]
};

/// The sums of `count` steps of k.
template <class Sums, int R>
MODELFLOW_INLINE void add_steps(const std::int8_t* a, std::size_t lda, const std::byte* w, std::size_t count,
                                Ints (&total)[R][2]) {
  Ints sum[R][2] = {};
  for (std::size_t k = 0; k < count; k += 8, a += 8, w += 4 * kPanel4) {
    const Ints both[2] = {load_ints(reinterpret_cast<const std::int32_t*>(w)),
                          load_ints(reinterpret_cast<const std::int32_t*>(w + 32))};
#pragma GCC unroll 2
    for (std::size_t half = 0; half < 2; ++half) {
      Ints weights[2];
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) weights[v] = (half ? both[v] >> 4 : both[v]) & 0x0f0f0f0f;
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const Ints four = all_words(a + static_cast<std::size_t>(r) * lda + 4 * half);
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) Sums::add(sum[r][v], weights[v], four);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) total[r][v] += Sums::wide(sum[r][v]);
}

template <class Sums, int R>
__attribute__((noinline)) void tile(const Tile& t) {
  const std::size_t bytes = block4_bytes(t.block, t.zeros), header = header4_bytes(t.zeros);
  Floats total[R][2] = {};
  const std::byte* b = t.b;
  const std::int8_t* a = t.a;
  for (std::size_t i = 0; i < t.blocks; ++i, b += bytes, a += t.block) {
    const BlockSteps* steps = t.steps + i;
    Ints sum[R][2];
    for (int r = 0; r < R; ++r)
      sum[r][0] = sum[r][1] = Ints{} + (t.zeros ? 0 : steps[static_cast<std::size_t>(r) * t.blocks].eights);
    for (std::size_t k = 0; k < t.block; k += Sums::kMost < t.block ? Sums::kMost : t.block) {
      const std::size_t left = t.block - k, count = left < Sums::kMost ? left : Sums::kMost;
      add_steps<Sums, R>(a + k, t.lda, b + header + k / 2 * kPanel4, count, sum);
    }
    const auto* scale = reinterpret_cast<const float*>(b);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const BlockSteps& of = steps[static_cast<std::size_t>(r) * t.blocks];
#pragma GCC unroll 2
      for (std::size_t v = 0; v < 2; ++v) {
        total[r][v] += as_floats(sum[r][v]) * of.unit * load(scale + v * kLanes);
        if (t.zeros) total[r][v] -= load(scale + kPanel4 + v * kLanes) * of.sum;
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (std::size_t v = 0; v < 2; ++v) store(t.out + static_cast<std::size_t>(r) * kColumns + v * kLanes, total[r][v]);
}

template <class Sums, int R = static_cast<int>(kRows)>
void run_tile(const Tile& t, std::size_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return run_tile<Sums, R - 1>(t, rows);
  }
  tile<Sums, R>(t);
}

template <class Sums>
void multiply(const Gemm4& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end) {
  const std::size_t rows = m_end - m_begin, tiles = (rows + kRows - 1) / kRows;
  const std::size_t panel = g.blocks * block4_bytes(g.block, g.zero_points);
  alignas(32) float sums[kRows * kColumns];
  for (std::size_t n = n_begin; n < n_end; n += kColumns) {
    const std::byte* b = g.b + n / kPanel4 * panel + n % kPanel4 * sizeof(float);
    const std::size_t columns = n_end - n < kColumns ? n_end - n : kColumns;
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t m = m_begin + rows * i / tiles, height = m_begin + rows * (i + 1) / tiles - m;
      run_tile<Sums>({g.a + m * g.lda, g.lda, g.steps + m * g.blocks, g.blocks, g.block, b, g.zero_points, sums},
                     height);
      const float* totals = sums;
      finish_columns(g.out, m, height, n, columns,
                     [=](std::size_t r, std::size_t j, auto) { return load(totals + r * kColumns + j); });
    }
  }
}

void quantize_block(const float* a, std::size_t block, std::int8_t* out, BlockSteps& of) {
  const float largest = largest_size(a, block), range = largest < 1e-30f ? 1e-30f : largest;
  const Floats inverse = all(127 / range);
  Ints total = {};
  for (std::size_t j = 0; j < block; j += kLanes) {
    const Ints x = nearest(load(a + j) * inverse);
    total += x;
    store_bytes(reinterpret_cast<std::uint8_t*>(out + j), x & 0xff, Whole{});
  }
  std::int32_t sum = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane)  // of no numbers it is any number
    sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(total[lane]));
  const float unit = step_size(range);
  of = {unit, unit * static_cast<float>(sum), static_cast<std::int32_t>(-8 * static_cast<std::int64_t>(sum))};
}

void quantize_blocks(const float* a, std::size_t rows, std::size_t blocks, std::size_t block, std::int8_t* out,
                     std::size_t ldo, BlockSteps* steps) {
  for (std::size_t r = 0; r < rows; ++r, out += ldo) {
    for (std::size_t i = 0; i < blocks; ++i, a += block) quantize_block(a, block, out + i * block, *steps++);
  }
}

}  // namespace

const Code4 code4_avx2 = {multiply<PairSums>, quantize_blocks};
const Code4 code4_quads_avx2 = {multiply<QuadSums>, quantize_blocks};

}  // namespace modelflow::cpu
