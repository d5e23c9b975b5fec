// LSTM and GRU with float32 weights: products of a few rows by packed weights, and the code around them. Internal
// linkage on purpose: each including file is compiled for another instruction set, and the linker must not mix them.
#pragma once

#include <algorithm>

#include "backends/cpu/recurrent/walk.h"

namespace modelflow::cpu {
namespace {

constexpr int kRegisters = kLanes == 16 ? 32 : 16;

/// Whether the weights of a block are packed gate by gate. Where registers hold the sums of few gates at a time, each
/// gate is read from its first step of depth to its last before the next one begins.
constexpr bool kByGate = kPieces > 1;

struct FloatProduct {
  static constexpr bool kManyRows = true;

  template <int Rows, int Gates>
  MODELFLOW_INLINE static void multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                        Floats (&sum)[Rows][Gates][kPieces]);
};

/// The weights of one block of units.
template <int Gates>
struct BlockWeights {
  const float* first;
  std::size_t depth;
  /// Vector `piece` of a gate at step k of depth.
  MODELFLOW_INLINE Floats at(std::size_t k, int gate, int piece) const {
    const auto g = static_cast<std::size_t>(gate);
    const std::size_t place = kByGate ? g * depth + k : k * Gates + g;
    return load(first + place * kUnits + static_cast<std::size_t>(piece) * kLanes);
  }
};

/// The sums of the gates [First, First + Count).
template <int First, int Count, int Rows, int Gates>
MODELFLOW_INLINE void multiply_gates(const BlockWeights<Gates>& weights, const RecurrentRow* rows,
                                     Floats (&sum)[Rows][Gates][kPieces]) {
  constexpr int kColumns = Count * kPieces, kSums = Rows * kColumns;
  // An addition takes four cycles and two start in each: eight sums at least.
  constexpr int kApart = kSums > 6 ? 1 : kSums >= 3 ? 2 : kSums == 2 ? 4 : 8;
  Floats apart[kApart][Rows][kColumns] = {};
  const float* in[Rows];
  for (int r = 0; r < Rows; ++r) in[r] = rows[r].in;
  const auto step = [&](std::size_t k, int set) __attribute__((always_inline)) {
    Floats w[kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) w[i] = weights.at(k, First + i / kPieces, i % kPieces);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Floats x = all(in[r][k]);
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) apart[set][r][i] += x * w[i];
    }
  };
  std::size_t k = 0;
  for (; k + kApart <= weights.depth; k += kApart) {
#pragma GCC unroll 8
    for (int i = 0; i < kApart; ++i) step(k + static_cast<std::size_t>(i), i);
  }
  for (; k < weights.depth; ++k) step(k, 0);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) {
#pragma GCC unroll 8
      for (int other = 1; other < kApart; ++other) apart[0][r][i] += apart[other][r][i];
      sum[r][First + i / kPieces][i % kPieces] = apart[0][r][i];
    }
  }
}

/// All gates from `First` on, as many at a time as registers hold the sums of, beside the weights of a step and a
/// number of a row. One row reads its weights from memory as they are added.
template <int First, int Rows, int Gates>
MODELFLOW_INLINE void multiply_from(const BlockWeights<Gates>& weights, const RecurrentRow* rows,
                                    Floats (&sum)[Rows][Gates][kPieces]) {
  constexpr int kFit = Rows == 1 ? Gates : std::max((kRegisters - 1) / ((Rows + 1) * kPieces), 1);
  constexpr int kCount = std::min(Gates - First, kFit);
  multiply_gates<First, kCount>(weights, rows, sum);
  if constexpr (First + kCount < Gates) multiply_from<First + kCount>(weights, rows, sum);
}

template <int Rows, int Gates>
MODELFLOW_INLINE void FloatProduct::multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                             Floats (&sum)[Rows][Gates][kPieces]) {
  const float* first = reinterpret_cast<const float*>(part.packed) + block * part.depth * Gates * kUnits;
  multiply_from<0>(BlockWeights<Gates>{first, part.depth}, rows, sum);
}

constexpr RecurrentCode kCode = {.layout = kByGate ? "float32 by gate" : "float32",
                                 .packed_bytes = packed_float_bytes,
                                 .pack = kByGate ? pack_floats_by_gate : pack_floats,
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
