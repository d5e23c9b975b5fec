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

template <class T, int N>
__global__ void pool_windows(const PoolLaunch a) {
  const std::int64_t pieces = a.channels / N, units = a.batch * a.high.out * a.wide.out * pieces;
  for (std::int64_t unit = thread_of_grid(); unit < units; unit += threads_of_grid()) {
    const std::int64_t channel = unit % pieces * N, pixel = unit / pieces;
    const Span across = span_of(a.wide, pixel % a.wide.out);
    const Span down = span_of(a.high, pixel / a.wide.out % a.high.out);
    const std::int64_t image = pixel / a.wide.out / a.high.out * a.high.in * a.wide.in;
    float v[N];
    for (int k = 0; k < N; ++k) v[k] = a.max ? -__builtin_huge_valf() : 0.0F;
    std::int64_t count = 0;
    for (std::int64_t h = down.first; h < down.last; ++h)
      for (std::int64_t w = across.first; w < across.last; ++w, ++count) {
        float x[N];
        read<T, N>(static_cast<const T*>(a.x) + (image + h * a.wide.in + w) * a.channels + channel, x);
        for (int k = 0; k < N; ++k) v[k] = a.max ? Max()(v[k], x[k]) : v[k] + x[k];
      }
    if (a.counts_pad) count = a.high.kernel * a.wide.kernel;
    if (!a.max)
      for (int k = 0; k < N; ++k) v[k] = count > 0 ? v[k] / static_cast<float>(count) : 0.0F;
    write<T, N>(v, static_cast<T*>(a.y) + pixel * a.channels + channel);
  }
}

}  // namespace

const char* start_pool(const PoolLaunch& a, void* stream) {
  return with_type_or_bytes(a.number, [&]<class T>(T) {
    constexpr int kWide = 16 / sizeof(T);
    const std::int64_t elements = a.batch * a.high.out * a.wide.out * a.channels;
    if (a.channels % kWide == 0 && aligned(a.x, 16) && aligned(a.y, 16))
      return launch(pool_windows<T, kWide>, over_units(elements / kWide, stream), a);
    return launch(pool_windows<T, 1>, over_units(elements, stream), a);
  });
}

}  // namespace modelflow::cuda
