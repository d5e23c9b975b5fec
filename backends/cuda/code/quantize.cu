// Into 8 bits and back, by the way from channels second to channels last and back; and sums of 8-bit numbers.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

using Byte = std::uint8_t;

/// A float as its step, a step as its float.
template <class From>
__device__ inline float converted(const Steps& steps, float x) {
  return sizeof(From) == 1 ? number_of(steps, x) : step_of(steps, x);
}

template <class From, class To, int N>
__global__ void convert(const QuantizeLaunch a) {
  const std::int64_t all = a.matrices * a.rows * a.columns;
  for (std::int64_t i = thread_of_grid() * N; i < all; i += threads_of_grid() * N) {
    float v[N];
    read<From, N>(static_cast<const From*>(a.x) + i, v);
    for (int k = 0; k < N; ++k) v[k] = converted<From>(a.steps, v[k]);
    write<To, N>(v, static_cast<To*>(a.y) + i);
  }
}

constexpr int kSide = 32, kLines = 8;  // of a tile; that a block moves at once

/// By way of shared memory, so that neighbours read and write neighbours on either side.
template <class From, class To>
__global__ void __launch_bounds__(kSide* kLines) convert_turned(const QuantizeLaunch a) {
  __shared__ float tile[kSide][kSide + 1];
  const LargeGrid here = LargeGrid{ceil_div(a.columns, kSide), ceil_div(a.rows, kSide), a.matrices}.here();
  if (here.z >= a.matrices) return;
  const int lane = static_cast<int>(threadIdx.x) % kSide, line = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t matrix = here.z * a.rows * a.columns, row0 = here.y * kSide, column0 = here.x * kSide;
  for (int i = line; i < kSide; i += kLines)
    if (row0 + i < a.rows && column0 + lane < a.columns)
      tile[i][lane] =
          static_cast<float>(static_cast<const From*>(a.x)[matrix + (row0 + i) * a.columns + column0 + lane]);
  __syncthreads();
  for (int i = line; i < kSide; i += kLines)
    if (column0 + i < a.columns && row0 + lane < a.rows)
      static_cast<To*>(a.y)[matrix + (column0 + i) * a.rows + row0 + lane] =
          stored<To>(converted<From>(a.steps, tile[lane][i]));
}

template <class From, class To>
const char* start(const QuantizeLaunch& a, void* stream) {
  if (a.turned) {
    const LargeGrid grid{ceil_div(a.columns, kSide), ceil_div(a.rows, kSide), a.matrices};
    return launch(convert_turned<From, To>, grid.launch(kSide * kLines, 0, stream), a);
  }
  const std::int64_t all = a.matrices * a.rows * a.columns;
  if (all % 4 == 0 && aligned(a.x, 4 * sizeof(From)) && aligned(a.y, 4 * sizeof(To)))
    return launch(convert<From, To, 4>, over_units(all / 4, stream), a);
  return launch(convert<From, To, 1>, over_units(all, stream), a);
}

template <int N>
__global__ void add_steps(const __grid_constant__ QAddLaunch a) {
  for (std::int64_t i = thread_of_grid() * N; i < a.elements; i += threads_of_grid() * N) {
    float x[N], y[N];
    fetch<Byte, N>(a.a, a.places, 0, i, x);
    fetch<Byte, N>(a.b, a.places, 1, i, y);
    for (int k = 0; k < N; ++k) {
      const float sum = number_of(a.a_steps, x[k]) + number_of(a.b_steps, y[k]);
      x[k] = step_of(a.y_steps, a.relu && sum < 0 ? 0 : sum);
    }
    write<Byte, N>(x, a.y + i);
  }
}

}  // namespace

const char* start_quantize(const QuantizeLaunch& a, void* stream) {
  return with_type(a.number, [&](auto type) { return start<decltype(type), Byte>(a, stream); });
}
const char* start_dequantize(const QuantizeLaunch& a, void* stream) { return start<Byte, float>(a, stream); }

const char* start_qadd(const QAddLaunch& a, void* stream) {
  constexpr int kWide = 8;
  if (fetches(a.a, a.places, 0, kWide, 1) && fetches(a.b, a.places, 1, kWide, 1) && aligned(a.y, kWide))
    return launch(add_steps<kWide>, over_units(a.elements / kWide, stream), a);
  return launch(add_steps<1>, over_units(a.elements, stream), a);
}

}  // namespace modelflow::cuda
