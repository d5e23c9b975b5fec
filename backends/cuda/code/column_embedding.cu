// Rows of tables side by side, in pieces as large as all of them allow.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

/// The id that a row of ids has for this table; -1 where it names none of its rows.
__device__ inline std::int64_t row_of(const ColumnEmbeddingLaunch& a, const ColumnEmbeddingLaunch::Table& table,
                                      std::int64_t r) {
  const std::int64_t at = r * a.step + table.column;
  std::int64_t id =
      a.narrow ? static_cast<const std::int32_t*>(a.ids)[at] : static_cast<const std::int64_t*>(a.ids)[at];
  if (id < 0) id += table.count;
  return id < table.count ? id : -1;
}

template <class T>
__global__ void embed_columns(const __grid_constant__ ColumnEmbeddingLaunch a) {
  constexpr auto kPiece = static_cast<std::int64_t>(sizeof(T));
  const std::int64_t pieces = a.width / kPiece;
  for (std::int64_t unit = thread_of_grid(); unit < a.rows * pieces; unit += threads_of_grid()) {
    const std::int64_t r = unit / pieces, to = unit % pieces * kPiece;
    std::int64_t at = to;
    int t = 0;
    while (at >= a.table[t].width) at -= a.table[t++].width;
    const ColumnEmbeddingLaunch::Table& table = a.table[t];
    const std::int64_t id = row_of(a, table, r);
    T piece = {};
    if (id >= 0) piece = *reinterpret_cast<const T*>(static_cast<const char*>(table.rows) + id * table.width + at);
    *reinterpret_cast<T*>(static_cast<char*>(a.y) + r * a.row + to) = piece;
  }
}

template <class T>
bool fits(const ColumnEmbeddingLaunch& a) {
  constexpr auto kPiece = static_cast<std::int64_t>(sizeof(T));
  bool all = aligned(a.y, sizeof(T)) && a.row % kPiece == 0;
  for (int t = 0; t < a.tables; ++t) all = all && a.table[t].width % kPiece == 0 && aligned(a.table[t].rows, sizeof(T));
  return all;
}

template <class T>
const char* start(const ColumnEmbeddingLaunch& a, void* stream) {
  return launch(embed_columns<T>, over_units(a.rows * (a.width / static_cast<std::int64_t>(sizeof(T))), stream), a);
}

}  // namespace

const char* start_column_embedding(const ColumnEmbeddingLaunch& a, void* stream) {
  if (fits<uint4>(a)) return start<uint4>(a, stream);
  if (fits<uint2>(a)) return start<uint2>(a, stream);
  return fits<std::uint32_t>(a) ? start<std::uint32_t>(a, stream) : start<std::uint16_t>(a, stream);
}

}  // namespace modelflow::cuda
