// LSTM and GRU with float32 weights: products of a few rows by packed weights, and the code around them. Internal
// linkage on purpose: each including file is compiled for another instruction set, and the linker must not mix them.
#pragma once

#include "backends/cpu/recurrent/walk.h"

namespace modelflow::cpu {
namespace {

struct FloatProduct {
  static constexpr bool kManyRows = kPieces == 1;  // else a block of units takes several registers

  template <int Rows, int Gates>
  MODELFLOW_INLINE static void multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                        Floats (&sum)[Rows][Gates][kPieces]);
};

template <int Rows, int Gates>
MODELFLOW_INLINE void FloatProduct::multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                             Floats (&sum)[Rows][Gates][kPieces]) {
  constexpr int kColumns = Gates * kPieces, kSums = Rows * kColumns;
  // An addition takes four cycles and two start in each: eight sums at least.
  constexpr int kApart = kSums >= 6 ? (kSums == 6 && kPieces == 1 ? 2 : 1) : kSums >= 3 ? 2 : kSums == 2 ? 4 : 8;
  Floats apart[kApart][Rows][kColumns] = {};
  const std::size_t depth = part.depth;
  const float* b = reinterpret_cast<const float*>(part.packed) + block * depth * Gates * kUnits;
  const float* in[Rows];
  for (int r = 0; r < Rows; ++r) in[r] = rows[r].in;
  const auto step = [&](std::size_t k, int set) __attribute__((always_inline)) {
    Floats w[kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) w[i] = load(b + static_cast<std::size_t>(set * kColumns + i) * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Floats x = all(in[r][k]);
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) apart[set][r][i] += x * w[i];
    }
  };
  std::size_t k = 0;
  for (; k + kApart <= depth; k += kApart, b += kApart * Gates * kUnits) {
#pragma GCC unroll 8
    for (int i = 0; i < kApart; ++i) step(k + static_cast<std::size_t>(i), i);
  }
  for (; k < depth; ++k, b += Gates * kUnits) step(k, 0);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) {
#pragma GCC unroll 8
      for (int other = 1; other < kApart; ++other) apart[0][r][i] += apart[other][r][i];
      sum[r][i / kPieces][i % kPieces] = apart[0][r][i];
    }
  }
}

constexpr RecurrentCode kCode = {.layout = "float32",
                                 .packed_bytes = packed_float_bytes,
                                 .pack = pack_floats,
                                 .step_bytes = nullptr,
                                 .quantize = nullptr,
                                 .project_lstm = walk<FloatProduct, Projection<4>>,
                                 .project_gru = walk<FloatProduct, Projection<3>>,
                                 .lstm = walk<FloatProduct, LstmStep>,
                                 .gru = walk<FloatProduct, GruStep>,
                                 .gru_gates = walk<FloatProduct, GruGatesStep>,
                                 .gru_candidate = walk<FloatProduct, GruCandidateStep>};

}  // namespace
}  // namespace modelflow::cpu
