// Sums of rows that indices name, in float32. Where there are few, each row looks for all indices of it: one launch,
// and sums in the order of the updates. Else atomic additions, in any order, so that the last digits of a sum may
// differ from run to run, as with ONNX Runtime's own kernel: to sort the indices of so many takes longer than the sums
// do.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

/// N elements of y at a time, as they lie.
template <class From, class To, int N>
__global__ void copy_numbers(const From* from, To* to, std::int64_t pieces) {
  for (std::int64_t i = thread_of_grid(); i < pieces; i += threads_of_grid()) {
    float v[N];
    read<From, N>(from + i * N, v);
    write<To, N>(v, to + i * N);
  }
}

/// The row that an update is for; none of them where the index names none.
__device__ inline std::int64_t row_of(const ScatterAddLaunch& a, std::int64_t update) {
  const std::int64_t at = a.single ? 0 : update;
  const std::int64_t row =
      a.narrow ? static_cast<const std::int32_t*>(a.indices)[at] : static_cast<const std::int64_t*>(a.indices)[at];
  return row < 0 ? row + a.rows : row;
}

/// A warp for each row.
template <class T>
__global__ void find_updates(const ScatterAddLaunch a) {
  constexpr int kEach = 4, kWarp = 32;
  const T *const data = static_cast<const T*>(a.data), *const update = static_cast<const T*>(a.update);
  const auto lane = static_cast<std::int64_t>(threadIdx.x);
  for (std::int64_t r = first_row(); r < a.rows; r += rows_of_grid())
    for (std::int64_t first = lane; first - lane < a.width; first += kEach * kWarp) {
      float sums[kEach] = {};
      const auto add = [&](const T* row) {
#pragma unroll
        for (int k = 0; k < kEach; ++k)
          if (first + k * kWarp < a.width) sums[k] += static_cast<float>(row[first + k * kWarp]);
      };
      add(data + r * a.width);
      for (std::int64_t i = 0; i < a.updates; i += kWarp) {
        unsigned found = __ballot_sync(~0U, i + lane < a.updates && row_of(a, i + lane) == r);
        for (; found != 0; found &= found - 1) add(update + (i + __ffs(static_cast<int>(found)) - 1) * a.width);
      }
#pragma unroll
      for (int k = 0; k < kEach; ++k)
        if (first + k * kWarp < a.width)
          static_cast<T*>(a.y)[r * a.width + first + k * kWarp] = static_cast<T>(sums[k]);
    }
}

template <class T>
__global__ void add_updates(const ScatterAddLaunch a) {
  for (std::int64_t unit = thread_of_grid(); unit < a.updates * a.width; unit += threads_of_grid()) {
    const std::int64_t row = row_of(a, unit / a.width);
    if (row >= 0 && row < a.rows)
      atomicAdd(a.sums + row * a.width + unit % a.width, static_cast<float>(static_cast<const T*>(a.update)[unit]));
  }
}

template <class From, class To>
const char* copy(const void* from, void* to, std::int64_t count, void* stream) {
  constexpr int kWide = 4;
  const auto start = [&]<int N>(std::integral_constant<int, N>) {
    return launch(copy_numbers<From, To, N>, over_units(count / N, stream), static_cast<const From*>(from),
                  static_cast<To*>(to), count / N);
  };
  if (count % kWide == 0 && aligned(from, kWide * sizeof(From)) && aligned(to, kWide * sizeof(To)))
    return start(std::integral_constant<int, kWide>());
  return start(std::integral_constant<int, 1>());
}

template <class T>
const char* start(const ScatterAddLaunch& a, void* stream) {
  constexpr unsigned kWarps = 8;  // which read the same indices
  if (!a.sums) return launch(find_updates<T>, {blocks_for(a.rows, kWarps), {32, kWarps}, 0, stream_of(stream)}, a);
  const std::int64_t count = a.rows * a.width;
  if (const char* why = copy<T, float>(a.data, a.sums, count, stream)) return why;
  if (a.updates > 0)
    if (const char* why = launch(add_updates<T>, over_units(a.updates * a.width, stream), a)) return why;
  return a.sums == a.y ? nullptr : copy<float, T>(a.sums, a.y, count, stream);
}

}  // namespace

const char* start_scatter_add(const ScatterAddLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) { return start<T>(a, stream); });
}

}  // namespace modelflow::cuda
