// The cells of LSTM and GRU: where the numbers of a unit lie, and what becomes of its sums at a step.
#pragma once

#include "backends/cuda/device/activation.h"
#include "backends/cuda/launches/recurrent.h"

namespace modelflow::cuda {

__host__ __device__ inline std::int64_t gates_of(const RecurrentLaunch& a) { return (a.lstm ? 4 : 3) * a.hidden; }
__host__ __device__ inline std::int64_t states_of(const RecurrentLaunch& a) { return a.dirs * a.batch * a.hidden; }

/// A unit of a sequence at a step.
struct Cell {
  std::int64_t dir, row, unit, step, time;  ///< time: in x and y
  bool there, active;                       ///< the sequence exists; it has not ended yet

  template <class T>
  static __device__ Cell of(const RecurrentLaunch& a, std::int64_t dir, std::int64_t row, std::int64_t unit,
                            std::int64_t step, T) {
    Cell cell = {dir, row, unit, step, step, row < a.batch, row < a.batch};
    if (!cell.there) return cell;
    std::int64_t length = a.seq;
    if (a.lengths) {
      const auto given = static_cast<float>(static_cast<const T*>(a.lengths)[row]);
      length = given > 0 ? given < static_cast<float>(a.seq) ? static_cast<std::int64_t>(given) : a.seq : 0;
    }
    cell.active = step < length;
    if (cell.active && (a.reverse || dir == 1)) cell.time = length - 1 - step;
    return cell;
  }
  __device__ std::int64_t state(const RecurrentLaunch& a) const { return (dir * a.batch + row) * a.hidden + unit; }
  /// Of gate `g` in what x gave.
  __device__ float& gate(const RecurrentLaunch& a, int g) const {
    const std::int64_t row_of_x = time * a.x_step + row * a.x_row;
    return a.gates[(dir * a.seq * a.batch + row_of_x) * gates_of(a) + g * a.hidden + unit];
  }
  __device__ float before(const RecurrentLaunch& a) const { return a.h[step % 2 * states_of(a) + state(a)]; }

  /// The new h to where it is asked for; what lies behind the end of a sequence is 0.
  template <class T>
  __device__ void put(const RecurrentLaunch& a, float h, T) const {
    a.h[(step + 1) % 2 * states_of(a) + state(a)] = h;
    const std::int64_t at = time * a.y_step + row * a.y_row + dir * a.y_dir + unit;
    if (a.y) static_cast<T*>(a.y)[at] = static_cast<T>(active ? h : 0.0F);
    if (a.last_h && step + 1 == a.seq) static_cast<T*>(a.last_h)[state(a)] = static_cast<T>(h);
  }
};

/// NaN stays NaN.
__device__ inline float cut(float x, float clip) { return x < -clip ? -clip : x > clip ? clip : x; }
__device__ inline float gate_of(const RecurrentLaunch& a, float x) { return sigmoid(cut(x, a.clip)); }
__device__ inline float mixed(float z, float n, float h) { return n + z * (h - n); }

/// What becomes of the products of h with the rows of r of some gates, the first of them `kFirst`; `x`: what x gave.
struct LstmStep {
  static constexpr int kFirst = 0, kGates = 4;
  static __device__ const float* factors(const RecurrentLaunch& a, std::int64_t step) {
    return a.h + step % 2 * states_of(a);
  }
  template <class T>
  static __device__ void finish(const RecurrentLaunch& a, const Cell& at, const float (&x)[4], const float (&sum)[4],
                                T) {
    float &c = a.c[at.state(a)], h = at.before(a);
    if (at.active) {
      c = gate_of(a, x[2] + sum[2]) * c + gate_of(a, x[0] + sum[0]) * tanhf(cut(x[3] + sum[3], a.clip));
      h = gate_of(a, x[1] + sum[1]) * tanhf(c);
    }
    at.put(a, h, T());
    if (a.last_c && at.step + 1 == a.seq) static_cast<T*>(a.last_c)[at.state(a)] = static_cast<T>(c);
  }
};
struct GruStep {
  static constexpr int kFirst = 0, kGates = 3;
  static __device__ const float* factors(const RecurrentLaunch& a, std::int64_t step) {
    return LstmStep::factors(a, step);
  }
  template <class T>
  static __device__ void finish(const RecurrentLaunch& a, const Cell& at, const float (&x)[3], const float (&sum)[3],
                                T) {
    const float h = at.before(a);
    const std::int64_t gates = gates_of(a);
    const float inner =
        a.bias ? static_cast<float>(static_cast<const T*>(a.bias)[(2 * at.dir + 1) * gates + 2 * a.hidden + at.unit])
               : 0.0F;
    const float n = tanhf(cut(x[2] + gate_of(a, x[1] + sum[1]) * (sum[2] + inner), a.clip));
    at.put(a, at.active ? mixed(gate_of(a, x[0] + sum[0]), n, h) : h, T());
  }
};
/// The reset before the product, in two launches: z takes the place of what x gave to it.
struct GruGates {
  static constexpr int kFirst = 0, kGates = 2;
  static __device__ const float* factors(const RecurrentLaunch& a, std::int64_t step) {
    return LstmStep::factors(a, step);
  }
  template <class T>
  static __device__ void finish(const RecurrentLaunch& a, const Cell& at, const float (&x)[2], const float (&sum)[2],
                                T) {
    if (!at.active) return;
    at.gate(a, 0) = gate_of(a, x[0] + sum[0]);
    a.reset[at.state(a)] = gate_of(a, x[1] + sum[1]) * at.before(a);
  }
};
struct GruCandidate {
  static constexpr int kFirst = 2, kGates = 1;
  static __device__ const float* factors(const RecurrentLaunch& a, std::int64_t) { return a.reset; }
  template <class T>
  static __device__ void finish(const RecurrentLaunch& a, const Cell& at, const float (&x)[1], const float (&sum)[1],
                                T) {
    const float h = at.before(a);
    at.put(a, at.active ? mixed(at.gate(a, 0), tanhf(cut(x[0] + sum[0], a.clip)), h) : h, T());
  }
};

}  // namespace modelflow::cuda
