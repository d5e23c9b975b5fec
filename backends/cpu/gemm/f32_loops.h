// Matrix products of float32 over vectors, tile by tile. For files named so, see vector.h.
#pragma once

#include "backends/cpu/gemm/f32.h"
#include "backends/cpu/gemm/f32_tile.h"

// Why tiles of our own: on Cascade Lake this one keeps 136 to 145 of 150 GFLOP/s per core with B in L2 (oneDNN's brgemm
// ukernel: 129), needs no code generation when a session is loaded, can take A where it lies, and finishes bias,
// residual and activation while the tile is in L1.
namespace modelflow::cpu {
namespace {

constexpr std::size_t kDepthInL1 = 96;       // 24 KiB of B for a tile
constexpr std::size_t kWorthPackingA = 192;  // columns

using Use = ops::Residual;

// Activation (and a residual that comes after it) on a tile that was just written.
void finish(const Gemm& g, std::size_t m, std::size_t rows, std::size_t n, std::size_t columns) {
  with_activation(g.activation, [&](auto f) {
    for (std::size_t r = m; r < m + rows; ++r) {
      float* c = g.c + r * g.ldc + n;
      const float* residual = g.residual && g.residual_use != Use::before ? g.residual + r * g.ldr + n : nullptr;
      const bool times = g.residual_use == Use::times;
      vectors(columns, [=](std::size_t j, auto part) {
        Floats x = f(load(c + j, part));
        if (residual) {
          const Floats other = load(residual + j, part);
          x = times ? x * other : x + other;
        }
        store(c + j, x, part);
      });
    }
  });
}

struct Depth {
  std::size_t begin, size;
  bool first, last;
};

/// Up to as many columns as a tile has, tile below tile.
class Column {
 public:
  Column(const Gemm& g, const Depth& depth, bool packed, std::size_t n, std::size_t columns)
      : g_(g), depth_(depth), n_(n), columns_(columns), tile_((columns - 1) % kLanes + 1) {
    tile_.lda = g.lda;
    tile_.b = g.b + n / kPanel * g.panel + depth.begin * g.ldb;
    tile_.ldb = g.ldb;
    tile_.panel = g.panel;
    tile_.ldc = g.ldc;
    tile_.k = depth.size;
    tile_.bias = depth.first && g.bias ? g.bias + n : nullptr;
    tile_.row_bias = nullptr;
    tile_.base = nullptr;
    tile_.base_ld = depth.first ? g.ldr : g.ldc;
    tile_.scale = g.scale;
    const bool behind = g.residual && g.residual_use != Use::before;
    tile_.relu = depth.last && !behind && g.activation.kind == Activation::relu && !g.activation.affine();
    finishes_ = depth.last && !tile_.relu && (behind || g.activation.kind != Activation::none);
    other_ = kPacksA ? packed : g.ldb == kPanel && depth.size > kDepthInL1;
  }

  /// `packed`: these rows of A, or null.
  void run(std::size_t m, std::size_t rows, const float* packed, const Ahead& ahead) {
    tile_.a = packed ? packed : g_.a + m * g_.lda + depth_.begin;
    tile_.c = g_.c + m * g_.ldc + n_;
    tile_.ahead = ahead;
    if (depth_.first && g_.row_bias) tile_.row_bias = g_.row_bias + m;
    if (!depth_.first)
      tile_.base = tile_.c;
    else if (g_.residual && g_.residual_use == Use::before)
      tile_.base = g_.residual + m * g_.ldr + n_;
    kTiles[other_][rows - 1][(columns_ - 1) / kLanes](tile_);
    if (finishes_) finish(g_, m, rows, n_, columns_);
  }

 private:
  const Gemm& g_;
  const Depth& depth_;
  std::size_t n_, columns_;
  Tile tile_;
  bool finishes_, other_;
};

Ahead fetch_ahead(const Gemm& g, std::size_t n, std::size_t depth_begin, std::size_t depth_size, std::size_t tiles) {
  const std::size_t steps = depth_size / 4 * tiles;
  if (g.ldb != kPanel || steps == 0) return {};
  const std::size_t all = depth_size * (kPanel / 16);  // lines of a panel
  return {g.b + n / kPanel * g.panel + depth_begin * g.ldb, (all + steps - 1) / steps, all};
}

// On AVX-512 two panels of B (192 KiB), the two that are fetched meanwhile and 144 rows of A (432 KiB) stay in an L2 of
// 1 MiB together with C. On AVX2 a panel of B is as large as L1, and the rows of A are half of L2.
GemmBlocks blocks(const Target& target) {
  const auto l1 = static_cast<std::size_t>(target.l1), l2 = static_cast<std::size_t>(target.l2);
  const std::size_t near = kLanes == 16 ? l2 * 3 / 32 : l1;
  const std::size_t most = near / (kPanel * sizeof(float)) / 4 * 4;
  GemmBlocks blocks;
  blocks.depth = most < 64 ? 64 : most < blocks.depth ? most : blocks.depth;
  if (kLanes == 16) return blocks;
  const std::size_t rows = l2 / 2 / (blocks.depth * sizeof(float)) / kMaxRows * kMaxRows;
  blocks.rows = rows < 24 ? 24 : rows < blocks.rows ? rows : blocks.rows;
  return blocks;
}

/// As much of k as stays in L2 at once, in steps of four: fewer rows of A leave room for more of B (Zen 5: 16 to 25
/// rows of 1024 x 4096 1.06 times as fast, 64 and more as before).
std::size_t deepest(const GemmBlocks& blocks, std::size_t rows) {
  constexpr std::size_t kColumnsOfB = 2 * kMaxColumns;  // of the tile and of the next one
  if (kPacksA || rows >= blocks.rows) return blocks.depth;
  return blocks.depth * (kColumnsOfB + blocks.rows) / (kColumnsOfB + rows) / 4 * 4;
}

std::size_t packed_a_floats(const Gemm& g, std::size_t rows, std::size_t columns) {
  if (!kPacksA || rows <= kMaxRows || columns < kWorthPackingA) return 0;
  return (rows < g.blocks.rows ? rows : g.blocks.rows) * (g.k < g.blocks.depth ? g.k : g.blocks.depth) + kLanes;
}

void pack_tiles(const Gemm& g, const Depth& depth, std::size_t m, Heights heights, float* to) {
  for (std::size_t tile = 0; tile < heights.tiles(); ++tile) {
    const std::size_t rows = heights.next();
    pack_a(g.a + m * g.lda + depth.begin, g.lda, rows, depth.size, to);
    m += rows, to += rows * depth.size;
  }
}

void gemm(const Gemm& g, std::size_t m_begin, std::size_t m_end, std::size_t n_begin, std::size_t n_end, float* own) {
  const std::size_t rows = m_end - m_begin, chunks = (rows + g.blocks.rows - 1) / g.blocks.rows;
  const std::size_t width = rows <= kFewRows ? 2 * kPanel : kMaxColumns;
  // A single tile of rows reads B once, best in long streams, which the machine fetches by itself (8 % faster).
  const bool streams = rows <= kMaxRows;
  if (!kPacksA || streams) own = nullptr;
  const std::size_t deep = deepest(g.blocks, rows);
  const std::size_t passes = g.k && !streams ? (g.k + deep - 1) / deep : 1;
  const std::size_t depth_size = ((g.k + passes - 1) / passes + 3) / 4 * 4;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const std::size_t begin = pass * depth_size, size = g.k - begin < depth_size ? g.k - begin : depth_size;
    const Depth depth{begin, size, pass == 0, pass + 1 == passes};
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t m0 = m_begin + rows * chunk / chunks, m1 = m_begin + rows * (chunk + 1) / chunks;
      const Heights equal(m1 - m0);
      if (own) pack_tiles(g, depth, m0, equal, own);
      for (std::size_t n = n_begin; n < n_end; n += width) {
        const std::size_t columns = n_end - n < width ? n_end - n : width;
        Ahead ahead = streams             ? Ahead{}
                      : n + width < n_end ? fetch_ahead(g, n + width, begin, size, equal.tiles())
                      : !depth.last       ? fetch_ahead(g, n_begin, begin + size, size, equal.tiles())
                                          : Ahead{};
        Heights heights = equal;
        const float* packed = own;
        Column column(g, depth, own != nullptr, n, columns);
        for (std::size_t m = m0, height; m < m1; m += height) {
          height = heights.next();
          column.run(m, height, packed, ahead);
          ahead.advance(size);
          if (packed) packed += height * size;
        }
      }
    }
  }
}

}  // namespace
}  // namespace modelflow::cpu
