// Copies of pixels with channels last: concatenation, repetition, or both, in pieces as large as all images allow.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

template <class T>
__global__ void copy_pixels(const __grid_constant__ CopyLaunch a) {
  constexpr auto kPiece = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t pieces = a.pixel / kPiece, units = a.batch * a.high * a.wide * pieces;
  for (std::int64_t unit = thread_of_grid(); unit < units; unit += threads_of_grid()) {
    const std::int64_t pixel = unit / pieces, w = pixel % a.wide, line = pixel / a.wide;
    const std::int64_t h = line % a.high, n = line / a.high;
    std::int64_t at = unit % pieces * kPiece;
    int i = 0;
    while (at >= a.from[i].pixel) at -= a.from[i++].pixel;
    const CopyLaunch::Source& from = a.from[i];
    const std::int64_t source = (n * from.high + h / from.up) * from.wide + w / from.across;
    static_cast<T*>(a.y)[unit] =
        *reinterpret_cast<const T*>(static_cast<const char*>(from.x) + source * from.pixel + at);
  }
}

template <class T>
bool fits(const CopyLaunch& a) {
  bool all = aligned(a.y, sizeof(T));
  for (int i = 0; i < a.images; ++i)
    all = all && a.from[i].pixel % static_cast<std::int64_t>(sizeof(T)) == 0 && aligned(a.from[i].x, sizeof(T));
  return all;
}

template <class T>
const char* start(const CopyLaunch& a, void* stream) {
  const std::int64_t bytes = a.batch * a.high * a.wide * a.pixel;
  return launch(copy_pixels<T>, over_units(bytes / static_cast<std::int64_t>(sizeof(T)), stream), a);
}

}  // namespace

const char* start_copy_pixels(const CopyLaunch& a, void* stream) {
  if (fits<uint4>(a)) return start<uint4>(a, stream);
  if (fits<uint2>(a)) return start<uint2>(a, stream);
  if (fits<std::uint32_t>(a)) return start<std::uint32_t>(a, stream);
  return fits<std::uint16_t>(a) ? start<std::uint16_t>(a, stream) : start<std::uint8_t>(a, stream);
}

}  // namespace modelflow::cuda
