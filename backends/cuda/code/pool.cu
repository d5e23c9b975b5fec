// Pooling with channels last: a thread has some channels of one window.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

struct Span {
  std::int64_t first, last;
};
/// What window `o` covers of an axis.
__device__ inline Span span_of(const PoolLaunch::Axis& axis, std::int64_t o) {
  const std::int64_t first = o * axis.stride - axis.begin, last = first + axis.kernel;
  return {first < 0 ? 0 : first, last < axis.in ? last : axis.in};
}

__host__ __device__ inline std::int64_t windows_of(const PoolLaunch& a) {
  return a.batch * a.axis[0].out * a.axis[1].out * a.axis[2].out;
}

template <class T, int N>
__global__ void pool_windows(const PoolLaunch a) {
  const auto& [planes, rows, columns] = a.axis;
  const std::int64_t pieces = a.channels / N, units = windows_of(a) * pieces;
  for (std::int64_t unit = thread_of_grid(); unit < units; unit += threads_of_grid()) {
    const std::int64_t pixel = unit / pieces, channel = unit % pieces * N;
    const std::int64_t line = pixel / columns.out, plane = line / rows.out;
    const std::int64_t image = planes.out == 1 ? plane : plane / planes.out;  // a division takes long
    const Span deep = span_of(planes, plane - image * planes.out), down = span_of(rows, line - plane * rows.out);
    const Span across = span_of(columns, pixel - line * columns.out);
    float v[N];
    for (int k = 0; k < N; ++k) v[k] = a.max ? -__builtin_huge_valf() : 0.0F;
    std::int64_t count = 0;
    for (std::int64_t d = deep.first; d < deep.last; ++d)
      for (std::int64_t h = down.first; h < down.last; ++h)
        for (std::int64_t w = across.first; w < across.last; ++w, ++count) {
          const std::int64_t at = ((image * planes.in + d) * rows.in + h) * columns.in + w;
          float x[N];
          read<T, N>(static_cast<const T*>(a.x) + at * a.channels + channel, x);
          for (int k = 0; k < N; ++k) v[k] = a.max ? Max()(v[k], x[k]) : v[k] + x[k];
        }
    if (a.counts_pad) count = planes.kernel * rows.kernel * columns.kernel;
    if (!a.max)
      for (int k = 0; k < N; ++k) v[k] = count > 0 ? v[k] / static_cast<float>(count) : 0.0F;
    write<T, N>(v, static_cast<T*>(a.y) + pixel * a.channels + channel);
  }
}

}  // namespace

const char* start_pool(const PoolLaunch& a, void* stream) {
  return with_type_or_bytes(a.number, [&]<class T>(T) {
    constexpr int kWide = 16 / sizeof(T);
    const std::int64_t elements = windows_of(a) * a.channels;
    if (a.channels % kWide == 0 && aligned(a.x, 16) && aligned(a.y, 16))
      return launch(pool_windows<T, kWide>, over_units(elements / kWide, stream), a);
    return launch(pool_windows<T, 1>, over_units(elements, stream), a);
  });
}

}  // namespace modelflow::cuda
