// Axes in another order: copies of rows in pieces as large as they allow, or tiles that are turned in shared memory, so
// that numbers side by side are read and written together.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

/// Where a row or a tile begins in x and y, in numbers.
struct Move {
  std::int64_t x, y;
};
__device__ inline Move move_of(const TransposeLaunch& a, std::int64_t unit) {
  Move at = {0, 0};
  for (int axis = a.axes - 1; axis >= 0; --axis) {
    const std::int64_t here = unit % a.outer[axis].extent;
    at.x += here * a.outer[axis].x, at.y += here * a.outer[axis].y;
    unit /= a.outer[axis].extent;
  }
  return at;
}
std::int64_t moves(const TransposeLaunch& a) {
  std::int64_t count = 1;
  for (int axis = 0; axis < a.axes; ++axis) count *= a.outer[axis].extent;
  return count;
}

template <class Piece>
__global__ void copy_rows(const __grid_constant__ TransposeLaunch a, std::int64_t units) {
  const std::int64_t pieces = a.row * a.bytes / static_cast<std::int64_t>(sizeof(Piece));
  for (std::int64_t unit = thread_of_grid(); unit < units; unit += threads_of_grid()) {
    const Move row = move_of(a, unit / pieces);
    const Piece* const from = reinterpret_cast<const Piece*>(static_cast<const char*>(a.x) + row.x * a.bytes);
    reinterpret_cast<Piece*>(static_cast<char*>(a.y) + row.y * a.bytes)[unit % pieces] = from[unit % pieces];
  }
}

/// A line of a tile in shared memory is of odd length: threads that read down a column meet in no bank.
inline std::int32_t step_of(const TransposeLaunch& a) { return a.wide | 1; }

template <class T>
__global__ void turn_tiles(const __grid_constant__ TransposeLaunch a, std::int64_t units, std::int32_t step) {
  MF_DYNAMIC_SHARED(T, tile);
  const T* const x = static_cast<const T*>(a.x);
  T* const y = static_cast<T*>(a.y);
  const std::int64_t down = ceil_div(a.rows.extent, a.high), across = ceil_div(a.columns.extent, a.wide);
  const int first = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (std::int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const std::int64_t row = unit % down * a.high, column = unit / down % across * a.wide;
    const Move at = move_of(a, unit / down / across);
    const std::int64_t from = at.x + row * a.rows.x + column, to = at.y + column * a.columns.y + row;
    const int high = static_cast<int>(a.rows.extent - row < a.high ? a.rows.extent - row : a.high);
    const int wide = static_cast<int>(a.columns.extent - column < a.wide ? a.columns.extent - column : a.wide);
    for (int i = first; i < high * wide; i += threads)
      tile[i / wide * step + i % wide] = x[from + i / wide * a.rows.x + i % wide];
    __syncthreads();
    for (int i = first; i < high * wide; i += threads)
      y[to + i / high * a.columns.y + i % high] = tile[i % high * step + i / high];
    __syncthreads();  // the next tile lies in the same place
  }
}

template <class Piece>
bool fits(const TransposeLaunch& a) {
  return a.row * a.bytes % static_cast<std::int64_t>(sizeof(Piece)) == 0 && aligned(a.x, sizeof(Piece)) &&
         aligned(a.y, sizeof(Piece));
}

template <class Piece>
const char* copy(const TransposeLaunch& a, void* stream) {
  const std::int64_t units = moves(a) * (a.row * a.bytes / static_cast<std::int64_t>(sizeof(Piece)));
  return launch(copy_rows<Piece>, over_units(units, stream), a, units);
}

template <class T>
const char* turn(const TransposeLaunch& a, void* stream) {
  constexpr unsigned kThreads = 256;
  const std::int64_t units = moves(a) * ceil_div(a.rows.extent, a.high) * ceil_div(a.columns.extent, a.wide);
  const auto shared = static_cast<unsigned>(a.high * step_of(a) * static_cast<std::int64_t>(sizeof(T)));
  return launch(turn_tiles<T>, {blocks_for(units, 1), kThreads, shared, stream_of(stream)}, a, units, step_of(a));
}

}  // namespace

const char* start_transpose(const TransposeLaunch& a, void* stream) {
  if (a.row == 0) return a.bytes == 4 ? turn<std::uint32_t>(a, stream) : turn<std::uint16_t>(a, stream);
  if (fits<uint4>(a)) return copy<uint4>(a, stream);
  if (fits<uint2>(a)) return copy<uint2>(a, stream);
  return fits<std::uint32_t>(a) ? copy<std::uint32_t>(a, stream) : copy<std::uint16_t>(a, stream);
}

}  // namespace modelflow::cuda
