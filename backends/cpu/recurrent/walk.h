// The walk over blocks of units and rows: a product, then the cells of its sums. Internal linkage on purpose: each
// including file is compiled for another instruction set, and the linker must not mix them.
#pragma once

#include "backends/cpu/recurrent/cells.h"

namespace modelflow::cpu {
namespace {

/// Product::multiply(part, rows, block, sum): sum[row][gate] = the row times the weights of a block of units.
template <class Product, class Step, int Rows>
__attribute__((noinline)) void tile(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block) {
  Floats sum[Rows][Step::kGates][kPieces];
  Product::multiply(part, rows, block, sum);
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int piece = 0; piece < kPieces; ++piece) {
      Floats of_gates[Step::kGates];
#pragma GCC unroll 4
      for (int g = 0; g < Step::kGates; ++g) of_gates[g] = sum[r][g][piece];
      Step::finish(part, rows[r], Place{block, static_cast<std::size_t>(piece) * kLanes}, of_gates);
    }
  }
}

using TileFunction = void (*)(const RecurrentPart&, const RecurrentRow*, std::size_t);

/// Rows that share one reading of the weights: as many as their sums of all gates fit in 24 of 32 registers, or those
/// of one gate in 12 of 16; or one.
template <class Product, class Step>
constexpr std::size_t kRowsOf = !Product::kManyRows                ? 1
                                : Step::kGates == 4 || kPieces > 1 ? 6
                                                                   : 8;

template <class Product, class Step>
constexpr TileFunction tile_of(std::size_t rows) {
  if constexpr (kRowsOf<Product, Step> == 1) {
    return tile<Product, Step, 1>;
  } else {
    constexpr TileFunction kTiles[] = {tile<Product, Step, 1>, tile<Product, Step, 2>, tile<Product, Step, 3>,
                                       tile<Product, Step, 4>, tile<Product, Step, 5>, tile<Product, Step, 6>};
    if constexpr (kRowsOf<Product, Step> == 8) {
      if (rows == 7) return tile<Product, Step, 7>;
      if (rows == 8) return tile<Product, Step, 8>;
    }
    return kTiles[rows - 1];
  }
}

template <class Product, class Step>
void walk(const RecurrentPart& part) {
  constexpr std::size_t kRows = kRowsOf<Product, Step>;
  const std::size_t groups = (part.count + kRows - 1) / kRows;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const std::size_t block = part.backwards ? part.end - 1 - (i - part.begin) : i;
    for (std::size_t group = 0; group < groups; ++group) {  // equal ones: 8 rows are 4 + 4
      const std::size_t first = part.count * group / groups, rows = part.count * (group + 1) / groups - first;
      tile_of<Product, Step>(rows)(part, part.rows + first, block);
    }
  }
}

}  // namespace
}  // namespace modelflow::cpu
