// Linear and cubic interpolation: a thread makes some channels of one pixel, or of one channel some pixels of a line.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

/// The sum over the lines that `down` names of what `across` gives, added to v. N numbers of a pixel side by side.
template <class T, int N, int taps>
__device__ inline void blend(const InterpolateLaunch& a, const T* image, const NumberTaps<taps>& down,
                             const NumberTaps<taps>& across, float (&v)[N]) {
#pragma unroll
  for (int i = 0; i < taps; ++i) {
    if (i > 0 && a.flat) continue;  // a line without weight would make NaN of an infinity
    float line[N] = {};
#pragma unroll
    for (int j = 0; j < taps; ++j) {
      float x[N];
      read<T, N>(image + (down.index[i] * a.wide.from + across.index[j]) * a.channels, x);
#pragma unroll
      for (int k = 0; k < N; ++k) line[k] += across.weight[j] * x[k];
    }
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] += a.flat ? line[k] : down.weight[i] * line[k];
  }
}

template <class T, int N, int taps>
__global__ void interpolate_channels(const InterpolateLaunch a) {
  const std::int64_t pieces = a.channels / N, units = a.images * a.high.to * a.wide.to * pieces;
  const T* const x = static_cast<const T*>(a.x);
  for (std::int64_t unit = thread_of_grid(); unit < units; unit += threads_of_grid()) {
    const std::int64_t pixel = unit / pieces, column = pixel % a.wide.to, line = pixel / a.wide.to;
    const std::int64_t image = line / a.high.to * a.high.from * a.wide.from;
    float v[N] = {};
    blend<T, N, taps>(a, x + image * a.channels + unit % pieces * N, taps_of<taps>(a.how, a.high, line % a.high.to),
                      taps_of<taps>(a.how, a.wide, column), v);
    write<T, N>(v, static_cast<T*>(a.y) + unit * N);
  }
}

constexpr int kPixels = 4;

/// Images of one channel: what is read lies anywhere, but kPixels neighbours are written at once.
template <int taps, class T>
__global__ void interpolate_lines(const InterpolateLaunch a) {
  const std::int64_t pieces = a.wide.to / kPixels, units = a.images * a.high.to * pieces;
  const T* const x = static_cast<const T*>(a.x);
  for (std::int64_t unit = thread_of_grid(); unit < units; unit += threads_of_grid()) {
    const std::int64_t line = unit / pieces, image = line / a.high.to * a.high.from * a.wide.from;
    const NumberTaps<taps> down = taps_of<taps>(a.how, a.high, line % a.high.to);
    float v[kPixels];
#pragma unroll
    for (int k = 0; k < kPixels; ++k) {
      float one[1] = {};
      blend<T, 1, taps>(a, x + image, down, taps_of<taps>(a.how, a.wide, unit % pieces * kPixels + k), one);
      v[k] = one[0];
    }
    write<T, kPixels>(v, static_cast<T*>(a.y) + unit * kPixels);
  }
}

template <class T, int taps>
const char* start(const InterpolateLaunch& a, void* stream) {
  constexpr int kWide = 16 / sizeof(T);
  const std::int64_t elements = a.images * a.high.to * a.wide.to * a.channels;
  if (a.channels % kWide == 0 && aligned(a.x, 16) && aligned(a.y, 16))
    return launch(interpolate_channels<T, kWide, taps>, over_units(elements / kWide, stream), a);
  if (a.channels == 1 && a.wide.to % kPixels == 0 && aligned(a.y, kPixels * sizeof(T)))
    return launch(interpolate_lines<taps, T>, over_units(elements / kPixels, stream), a);
  return launch(interpolate_channels<T, 1, taps>, over_units(elements, stream), a);
}

}  // namespace

const char* start_interpolate(const InterpolateLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) { return a.how.cubic ? start<T, 4>(a, stream) : start<T, 2>(a, stream); });
}

}  // namespace modelflow::cuda
