// Sums of rows that indices name, by atomic additions in float32. Those of one row come in any order, so that the last
// digits of a sum may differ from run to run, as with ONNX Runtime's own kernel. Sums in a fixed order would have to
// sort the indices first, or to read all of them for each row: of the edges of a graph, both take longer than the sums.
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

template <class T>
__global__ void add_updates(const ScatterAddLaunch a) {
  for (std::int64_t unit = thread_of_grid(); unit < a.updates * a.width; unit += threads_of_grid()) {
    const std::int64_t at = a.single ? 0 : unit / a.width;
    std::int64_t row =
        a.narrow ? static_cast<const std::int32_t*>(a.indices)[at] : static_cast<const std::int64_t*>(a.indices)[at];
    if (row < 0) row += a.rows;
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
