#pragma once

// Products of a few rows by packed weights with the cells behind them. Internal linkage on purpose: each including file
// is compiled for another instruction set, and the linker must not mix them.

#include "backends/cpu/recurrent_cells.h"

namespace modelflow::cpu {
namespace {

#ifdef __AVX512F__
constexpr int kMostRows = 6;  // 6 x 4 sums, 4 weights, 1 element: of 32 registers
constexpr std::size_t kWide = 16;
#elif defined(__AVX2__)
constexpr int kMostRows = 1;  // a block of units takes several registers
constexpr std::size_t kWide = 8;
#else
constexpr int kMostRows = 1;
constexpr std::size_t kWide = 4;
#endif
using Register =
    float __attribute__((vector_size(kWide * sizeof(float)), may_alias));  // aligned, as packed weights are
constexpr int kParts = static_cast<int>(kUnits / kWide);

/// sum[row][gate] = in[row] B, with B as [depth, Gates, kUnits].
template <int Rows, int Gates>
MODELFLOW_CELL void multiply(const RecurrentRow* rows, std::size_t depth, const float* b, Units (&sum)[Rows][Gates]) {
  constexpr int kColumns = Gates * kParts, kSums = Rows * kColumns;
  // An addition takes four cycles and two start in each: eight sums at least.
  constexpr int kApart = kSums >= 6 ? (kSums == 6 && kWide == 16 ? 2 : 1) : kSums >= 3 ? 2 : kSums == 2 ? 4 : 8;
  Register apart[kApart][Rows][kColumns] = {};
  const float* in[Rows];
  for (int r = 0; r < Rows; ++r) in[r] = rows[r].in;
  const auto step = [&](std::size_t k, int part) __attribute__((always_inline)) {
    Register w[kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i)
      w[i] = *reinterpret_cast<const Register*>(b + (static_cast<std::size_t>(part * kColumns + i)) * kWide);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const Register x = in[r][k] - Register{};  // minus 0 changes nothing, plus 0 would be computed
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) apart[part][r][i] += x * w[i];
    }
  };
  std::size_t k = 0;
  for (; k + kApart <= depth; k += kApart, b += kApart * Gates * kUnits) {
#pragma GCC unroll 8
    for (int part = 0; part < kApart; ++part) step(k + static_cast<std::size_t>(part), part);
  }
  for (; k < depth; ++k, b += Gates * kUnits) step(k, 0);
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) {
#pragma GCC unroll 8
      for (int part = 1; part < kApart; ++part) apart[0][r][i] += apart[part][r][i];
      reinterpret_cast<Register*>(&sum[r][i / kParts])[i % kParts] = apart[0][r][i];
    }
  }
}

template <class Step, int Rows>
__attribute__((noinline)) void tile(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block) {
  Units sum[Rows][Step::kGates];
  const auto* packed = reinterpret_cast<const float*>(part.packed);
  multiply(rows, part.depth, packed + block * part.depth * Step::kGates * kUnits, sum);
  for (int r = 0; r < Rows; ++r) Step::finish(part, rows[r], block, sum[r]);
}

using TileFunction = void (*)(const RecurrentPart&, const RecurrentRow*, std::size_t);

template <class Step>
void walk(const RecurrentPart& part) {
#ifdef __AVX512F__
  static constexpr TileFunction kTiles[kMostRows] = {tile<Step, 1>, tile<Step, 2>, tile<Step, 3>,
                                                     tile<Step, 4>, tile<Step, 5>, tile<Step, 6>};
#else
  static constexpr TileFunction kTiles[kMostRows] = {tile<Step, 1>};
#endif
  const std::size_t groups = (part.count + kMostRows - 1) / kMostRows;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const std::size_t block = part.backwards ? part.end - 1 - (i - part.begin) : i;
    for (std::size_t group = 0; group < groups; ++group) {  // equal ones: 8 rows are 4 + 4
      const std::size_t first = part.count * group / groups, rows = part.count * (group + 1) / groups - first;
      kTiles[rows - 1](part, part.rows + first, block);
    }
  }
}

constexpr RecurrentCode kCode = {.layout = "float32",
                                 .packed_bytes = packed_float_bytes,
                                 .pack = pack_floats,
                                 .step_bytes = nullptr,
                                 .quantize = nullptr,
                                 .project_lstm = walk<Projection<4>>,
                                 .project_gru = walk<Projection<3>>,
                                 .lstm = walk<LstmStep>,
                                 .gru = walk<GruStep>,
                                 .gru_gates = walk<GruGatesStep>,
                                 .gru_candidate = walk<GruCandidateStep>};

}  // namespace
}  // namespace modelflow::cpu
