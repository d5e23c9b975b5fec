// The cells of LSTM and GRU: what happens to the sums of their gates, a vector of units at a time. Internal linkage on
// purpose: each including file is compiled for another instruction set, and the linker must not mix them.
#pragma once

#include "backends/cpu/recurrent/code.h"
#include "backends/cpu/vector/math.h"

namespace modelflow::cpu {
namespace {

constexpr int kPieces = static_cast<int>(kUnits / kLanes);  ///< vectors of a block of units

/// The units that a vector holds.
struct Place {
  std::size_t block, offset;  ///< of the block
  MODELFLOW_INLINE std::size_t unit() const { return block * kUnits + offset; }
  /// Where gate g of so many stands.
  MODELFLOW_INLINE std::size_t gate(std::size_t g, std::size_t gates) const {
    return (block * gates + g) * kUnits + offset;
  }
};

MODELFLOW_INLINE Floats cut(Floats x, float clip) { return min(all(clip), max(all(-clip), x)); }

/// The new h into its places.
MODELFLOW_INLINE void put(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats h) {
  store(row.next + at.unit(), h);
  if (!row.y || at.unit() >= part.hidden) return;
  const std::size_t left = part.hidden - at.unit();
  if (left >= kLanes)
    store(row.y + at.unit(), h);
  else
    store(row.y + at.unit(), h, Rest(left));
}

/// `sum`: h R of the gates i, o, f, c.
MODELFLOW_INLINE void lstm_cell(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats (&sum)[4]) {
#pragma GCC unroll 4
  for (std::size_t g = 0; g < 4; ++g) sum[g] = cut(sum[g] + load(row.gates + at.gate(g, 4)), part.clip);
  const Floats c = sigmoid(sum[2]) * load(row.c + at.unit()) + sigmoid(sum[0]) * tanh(sum[3]);
  store(row.c + at.unit(), c);
  put(part, row, at, sigmoid(sum[1]) * tanh(c));
}

/// (1 - z) n + z h.
MODELFLOW_INLINE void mix(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats z, Floats n) {
  put(part, row, at, n + z * (load(row.h + at.unit()) - n));
}

/// `sum`: h R of the gates z, r, h.
MODELFLOW_INLINE void gru_cell(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats (&sum)[3]) {
  const auto gate = [&](std::size_t g) { return load(row.gates + at.gate(g, 3)); };
  const Floats z = sigmoid(cut(sum[0] + gate(0), part.clip)), r = sigmoid(cut(sum[1] + gate(1), part.clip));
  const Floats n = gate(2) + r * (sum[2] + load(part.bias + at.unit()));
  mix(part, row, at, z, tanh(cut(n, part.clip)));
}

/// `sum`: h R of the gates z, r.
MODELFLOW_INLINE void gru_gates_cell(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats (&sum)[2]) {
  const auto gate = [&](std::size_t g) { return sigmoid(cut(sum[g] + load(row.gates + at.gate(g, 3)), part.clip)); };
  store(row.gates + at.gate(0, 3), gate(0));
  store(row.next + at.unit(), gate(1) * load(row.h + at.unit()));
}

/// `sum`: (r * h) R of the gate h.
MODELFLOW_INLINE void gru_candidate_cell(const RecurrentPart& part, const RecurrentRow& row, Place at,
                                         Floats (&sum)[1]) {
  const Floats n = tanh(cut(sum[0] + load(row.gates + at.gate(2, 3)), part.clip));
  mix(part, row, at, load(row.gates + at.gate(0, 3)), n);
}

/// What is done with the sums of a product of `kGates` gates.
struct LstmStep {
  static constexpr int kGates = 4;
  MODELFLOW_INLINE static void finish(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats (&sum)[4]) {
    lstm_cell(part, row, at, sum);
  }
};
struct GruStep {
  static constexpr int kGates = 3;
  MODELFLOW_INLINE static void finish(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats (&sum)[3]) {
    gru_cell(part, row, at, sum);
  }
};
struct GruGatesStep {
  static constexpr int kGates = 2;
  MODELFLOW_INLINE static void finish(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats (&sum)[2]) {
    gru_gates_cell(part, row, at, sum);
  }
};
struct GruCandidateStep {
  static constexpr int kGates = 1;
  MODELFLOW_INLINE static void finish(const RecurrentPart& part, const RecurrentRow& row, Place at, Floats (&sum)[1]) {
    gru_candidate_cell(part, row, at, sum);
  }
};

/// The part of the gates that comes from x.
template <int Gates>
struct Projection {
  static constexpr int kGates = Gates;
  MODELFLOW_INLINE static void finish(const RecurrentPart& part, const RecurrentRow& row, Place at,
                                      Floats (&sum)[Gates]) {
#pragma GCC unroll 4
    for (int g = 0; g < Gates; ++g) {
      const std::size_t gate = at.gate(static_cast<std::size_t>(g), Gates);
      store(row.gates + gate, sum[g] + load(part.bias + gate));
    }
  }
};

}  // namespace
}  // namespace modelflow::cpu
