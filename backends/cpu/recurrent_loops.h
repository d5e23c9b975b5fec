#pragma once

// Products of a few rows by packed float32 weights, and the code around them. Internal linkage on purpose: each
// including file is compiled for another instruction set, and the linker must not mix them.

#include "backends/cpu/recurrent_walk.h"

namespace modelflow::cpu {
namespace {

#ifdef __AVX512F__
constexpr int kMostRows = 8;
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

/// The columns of some gates: sum[row][first + i] = in[row] B[first + i], with B as [depth, Gates, kUnits].
template <int Rows, int Gates, int First, int Count>
MODELFLOW_CELL void add_columns(const RecurrentRow* rows, std::size_t depth, const float* b,
                                Units (&sum)[Rows][Gates]) {
  constexpr int kColumns = Count * kParts, kSums = Rows * kColumns;
  // An addition takes four cycles and two start in each: eight sums at least.
  constexpr int kApart = kSums >= 6 ? (kSums == 6 && kWide == 16 ? 2 : 1) : kSums >= 3 ? 2 : kSums == 2 ? 4 : 8;
  Register apart[kApart][Rows][kColumns] = {};
  const float* in[Rows];
  for (int r = 0; r < Rows; ++r) in[r] = rows[r].in;
  b += First * kUnits;
  const auto step = [&](std::size_t k, int part) __attribute__((always_inline)) {
    Register w[kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i)
      w[i] = *reinterpret_cast<const Register*>(b + static_cast<std::size_t>(part * Gates * kParts + i) * kWide);
#pragma GCC unroll 8
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
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) {
#pragma GCC unroll 8
      for (int part = 1; part < kApart; ++part) apart[0][r][i] += apart[part][r][i];
      reinterpret_cast<Register*>(&sum[r][First + i / kParts])[i % kParts] = apart[0][r][i];
    }
  }
}

struct FloatProduct {
  static constexpr int kRows = kMostRows;

  /// All gates at once where their sums fit in 32 registers, else two and two: what rows share is the way of the
  /// weights from L2, so more rows are worth more than more gates.
  template <int Rows, int Gates>
  MODELFLOW_CELL static void multiply(const RecurrentPart& part, const RecurrentRow* rows, std::size_t block,
                                      Units (&sum)[Rows][Gates]) {
    const float* b = reinterpret_cast<const float*>(part.packed) + block * part.depth * Gates * kUnits;
    constexpr int kAtOnce = Rows * Gates <= 24 ? Gates : 2;
    add_columns<Rows, Gates, 0, kAtOnce>(rows, part.depth, b, sum);
    if constexpr (kAtOnce < Gates) add_columns<Rows, Gates, kAtOnce, Gates - kAtOnce>(rows, part.depth, b, sum);
  }
};

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
