// Rotary position embedding: a thread turns some pairs of a row, or copies elements behind those that turn.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

/// N pairs from pair `p` on, of elements or of angles: neighbours, or with the second ones `apart` behind the first.
template <class T, int N>
__device__ inline void read_pairs(const T* at, std::int64_t p, bool neighbours, std::int64_t apart, float (&first)[N],
                                  float (&second)[N]) {
  if (!neighbours) {
    read<T, N>(at + p, first);
    return read<T, N>(at + p + apart, second);
  }
  float low[N], high[N];
  read<T, N>(at + 2 * p, low);
  read<T, N>(at + 2 * p + N, high);
  for (int k = 0; k < N; ++k) {
    first[k] = 2 * k < N ? low[2 * k % N] : high[2 * k % N];
    second[k] = 2 * k + 1 < N ? low[(2 * k + 1) % N] : high[(2 * k + 1) % N];
  }
}

template <class T, int N>
__device__ inline void write_pairs(const float (&first)[N], const float (&second)[N], std::int64_t p, bool neighbours,
                                   std::int64_t apart, T* at) {
  if (!neighbours) {
    write<T, N>(first, at + p);
    return write<T, N>(second, at + p + apart);
  }
  float low[N], high[N];
  for (int k = 0; k < N; ++k) {
    low[k] = k % 2 == 0 ? first[k / 2] : second[k / 2];
    high[k] = (N + k) % 2 == 0 ? first[(N + k) / 2] : second[(N + k) / 2];
  }
  write<T, N>(low, at + 2 * p);
  write<T, N>(high, at + 2 * p + N);
}

template <class T, int N>
__device__ inline void turn(const RotaryLaunch& a, const T* x, const T* cos, const T* sin, std::int64_t p, T* y) {
  float x1[N], x2[N], c1[N], c2[N], s1[N], s2[N], y1[N], y2[N];
  read_pairs<T, N>(x, p, a.interleaved, a.pairs, x1, x2);
  const bool neighbours = a.interleaved && !a.half_width;
  const std::int64_t apart = a.half_width ? 0 : a.pairs;  // one angle for both
  read_pairs<T, N>(cos, p, neighbours, apart, c1, c2);
  read_pairs<T, N>(sin, p, neighbours, apart, s1, s2);
  for (int k = 0; k < N; ++k) {
    y1[k] = x1[k] * c1[k] - x2[k] * s1[k];
    y2[k] = x2[k] * c2[k] + x1[k] * s2[k];
  }
  write_pairs<T, N>(y1, y2, p, a.interleaved, a.pairs, y);
}

template <class T, int N>
__global__ void turn_rows(const RotaryLaunch a) {
  const std::int64_t turns = a.pairs / N, units = turns + (a.size - 2 * a.pairs) / N;
  const std::int64_t all = a.extents[0] * a.extents[1] * a.extents[2] * units;
  for (std::int64_t i = thread_of_grid(); i < all; i += threads_of_grid()) {
    const std::int64_t unit = i % units, row = i / units;
    const T* x = static_cast<const T*>(a.x) + row * a.size;
    T* y = static_cast<T*>(a.y) + row * a.size;
    if (unit >= turns) {
      const std::int64_t at = 2 * a.pairs + (unit - turns) * N;
      *reinterpret_cast<Pack<T, N>*>(y + at) = *reinterpret_cast<const Pack<T, N>*>(x + at);
      continue;
    }
    const std::int64_t at[3] = {row / a.extents[2] / a.extents[1], row / a.extents[2] % a.extents[1],
                                row % a.extents[2]};
    std::int64_t cos = 0, sin = 0;
    for (int axis = 0; axis < 3; ++axis) {
      cos += at[axis] * a.cos_steps[axis];
      sin += at[axis] * a.sin_steps[axis];
    }
    turn<T, N>(a, x, static_cast<const T*>(a.cos) + cos, static_cast<const T*>(a.sin) + sin, unit * N, y);
  }
}

template <class T, int N>
bool wide(const RotaryLaunch& a) {
  if (a.pairs % N != 0 || a.size % N != 0) return false;
  return aligned(a.x, sizeof(T) * N) && aligned(a.cos, sizeof(T) * N) && aligned(a.sin, sizeof(T) * N) &&
         aligned(a.y, sizeof(T) * N);
}

template <class T, int N>
const char* start(const RotaryLaunch& a, void* stream) {
  const std::int64_t rows = a.extents[0] * a.extents[1] * a.extents[2];
  return launch(turn_rows<T, N>, over_units(rows * (a.size - a.pairs) / N, stream), a);
}

}  // namespace

const char* start_rotary(const RotaryLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) {
    constexpr int kWide = 16 / sizeof(T);
    return wide<T, kWide>(a) ? start<T, kWide>(a, stream) : start<T, 1>(a, stream);
  });
}

}  // namespace modelflow::cuda
