// The cells of LSTM and GRU: what happens to the sums of their gates, on 16 units at a time in the compiler's own
// vectors. Internal linkage on purpose: each including file is compiled for another instruction set, and the linker
// must not mix them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/recurrent/code.h"
#include "backends/cpu/vector/exp_polynomial.h"
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace modelflow::cpu {
namespace {

using Units = float __attribute__((vector_size(kUnits * sizeof(float))));
struct __attribute__((packed, may_alias)) UnitsInMemory {  // clang forgets the alignment of a name behind a reference
  Units all;
};
using UnitBits = std::int32_t __attribute__((vector_size(kUnits * sizeof(float))));

// References: a vector in a parameter would have a calling convention that depends on the instruction set.
MODELFLOW_LOOP const UnitsInMemory& units(const float* x) { return *reinterpret_cast<const UnitsInMemory*>(x); }
MODELFLOW_LOOP UnitsInMemory& units(float* x) { return *reinterpret_cast<UnitsInMemory*>(x); }

/// exp(x) to about 1 ulp, x cut to [-87, 88]; NaN stays NaN. Written over x, as all functions here do.
MODELFLOW_LOOP void exponential(Units& x) {
  const Units low = Units{} - 87.0f, high = Units{} + 88.0f;
  x = x < low ? low : x;
  x = x > high ? high : x;
  exponential_within<Units, UnitBits>(x, x);
}

/// 1 / x of x >= 1.
MODELFLOW_LOOP void reciprocal(Units& x) {
#ifdef __AVX512F__
  const __m512 d = reinterpret_cast<__m512>(x), y = _mm512_rcp14_ps(d);
  x = reinterpret_cast<Units>(_mm512_fmadd_ps(_mm512_fnmadd_ps(d, y, _mm512_set1_ps(1.0f)), y, y));
#else
  x = 1.0f / x;
#endif
}

MODELFLOW_LOOP void sigmoid(Units& x) {
  x = -x;
  exponential(x);
  x = x + 1.0f;
  reciprocal(x);
}

/// A polynomial near 0 (where 1 - 2/(e^2x + 1) would cancel), that formula elsewhere.
MODELFLOW_LOOP void hyperbolic_tangent(Units& x) {
  const Units z = x * x;
  Units p = z * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const Units near = p * z * x + x;
  Units e = x + x;
  exponential(e);
  e = e + 1.0f;
  reciprocal(e);
  const Units far = 1.0f - 2.0f * e;
  x = z < Units{} + 0.390625f ? near : far;
}

MODELFLOW_LOOP void cut(Units& x, float clip) {
  const Units most = clip - Units{}, least = -most;
  x = x > most ? most : x;
  x = x < least ? least : x;
}

/// The new h into its places.
MODELFLOW_LOOP void put(const RecurrentPart& part, const RecurrentRow& row, std::size_t block, const Units& h) {
  const std::size_t at = block * kUnits, left = part.hidden - at;
  units(row.next + at).all = h;
  if (!row.y) return;
  if (left >= kUnits) {
    std::memcpy(row.y + at, &h, sizeof h);
  } else {
    std::memcpy(row.y + at, &h, left * sizeof(float));
  }
}

/// `sum`: h R of the gates i, o, f, c.
MODELFLOW_LOOP void lstm_cell(const RecurrentPart& part, const RecurrentRow& row, std::size_t block, Units (&sum)[4]) {
  const float* x = row.gates + block * 4 * kUnits;
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    sum[g] = sum[g] + units(x + static_cast<std::size_t>(g) * kUnits).all;
    cut(sum[g], part.clip);
  }
  sigmoid(sum[0]);
  sigmoid(sum[1]);
  sigmoid(sum[2]);
  hyperbolic_tangent(sum[3]);
  Units c = sum[2] * units(row.c + block * kUnits).all + sum[0] * sum[3];
  units(row.c + block * kUnits).all = c;
  hyperbolic_tangent(c);
  put(part, row, block, sum[1] * c);
}

/// (1 - z) n + z h.
MODELFLOW_LOOP void mix(const RecurrentPart& part, const RecurrentRow& row, std::size_t block, const Units& z,
                        const Units& n) {
  put(part, row, block, n + z * (units(row.h + block * kUnits).all - n));
}

/// `sum`: h R of the gates z, r, h.
MODELFLOW_LOOP void gru_cell(const RecurrentPart& part, const RecurrentRow& row, std::size_t block, Units (&sum)[3]) {
  const float* x = row.gates + block * 3 * kUnits;
  for (int g = 0; g < 2; ++g) {
    sum[g] = sum[g] + units(x + static_cast<std::size_t>(g) * kUnits).all;
    cut(sum[g], part.clip);
    sigmoid(sum[g]);
  }
  sum[2] = units(x + 2 * kUnits).all + sum[1] * (sum[2] + units(part.bias + block * kUnits).all);
  cut(sum[2], part.clip);
  hyperbolic_tangent(sum[2]);
  mix(part, row, block, sum[0], sum[2]);
}

/// `sum`: h R of the gates z, r.
MODELFLOW_LOOP void gru_gates_cell(const RecurrentPart& part, const RecurrentRow& row, std::size_t block,
                                   Units (&sum)[2]) {
  float* x = row.gates + block * 3 * kUnits;
  for (int g = 0; g < 2; ++g) {
    sum[g] = sum[g] + units(x + static_cast<std::size_t>(g) * kUnits).all;
    cut(sum[g], part.clip);
    sigmoid(sum[g]);
  }
  units(x).all = sum[0];
  units(row.next + block * kUnits).all = sum[1] * units(row.h + block * kUnits).all;
}

/// `sum`: (r * h) R of the gate h.
MODELFLOW_LOOP void gru_candidate_cell(const RecurrentPart& part, const RecurrentRow& row, std::size_t block,
                                       Units (&sum)[1]) {
  const float* x = row.gates + block * 3 * kUnits;
  sum[0] = sum[0] + units(x + 2 * kUnits).all;
  cut(sum[0], part.clip);
  hyperbolic_tangent(sum[0]);
  mix(part, row, block, units(x).all, sum[0]);
}

/// What is done with the sums of a product of `kGates` gates.
struct LstmStep {
  static constexpr int kGates = 4;
  MODELFLOW_LOOP static void finish(const RecurrentPart& part, const RecurrentRow& row, std::size_t block,
                                    Units (&sum)[4]) {
    lstm_cell(part, row, block, sum);
  }
};
struct GruStep {
  static constexpr int kGates = 3;
  MODELFLOW_LOOP static void finish(const RecurrentPart& part, const RecurrentRow& row, std::size_t block,
                                    Units (&sum)[3]) {
    gru_cell(part, row, block, sum);
  }
};
struct GruGatesStep {
  static constexpr int kGates = 2;
  MODELFLOW_LOOP static void finish(const RecurrentPart& part, const RecurrentRow& row, std::size_t block,
                                    Units (&sum)[2]) {
    gru_gates_cell(part, row, block, sum);
  }
};
struct GruCandidateStep {
  static constexpr int kGates = 1;
  MODELFLOW_LOOP static void finish(const RecurrentPart& part, const RecurrentRow& row, std::size_t block,
                                    Units (&sum)[1]) {
    gru_candidate_cell(part, row, block, sum);
  }
};

/// The part of the gates that comes from x.
template <int Gates>
struct Projection {
  static constexpr int kGates = Gates;
  MODELFLOW_LOOP static void finish(const RecurrentPart& part, const RecurrentRow& row, std::size_t block,
                                    Units (&sum)[Gates]) {
    const std::size_t at = block * Gates * kUnits;
#pragma GCC unroll 4
    for (int g = 0; g < Gates; ++g) {
      const std::size_t gate = at + static_cast<std::size_t>(g) * kUnits;
      units(row.gates + gate).all = sum[g] + units(part.bias + gate).all;
    }
  }
};

}  // namespace
}  // namespace modelflow::cpu
