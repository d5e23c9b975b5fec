// Embeddings: rows of tables summed and normalized, each read and written once.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

/// Elements of the row that an id names; null where it names none, as ONNX Runtime's Gather on CUDA gives zeros there.
template <class T>
__device__ inline const T* row_of(const EmbeddingLaunch& a, int t, std::int64_t r) {
  if (t >= a.tables) return nullptr;
  const EmbeddingLaunch::Table& table = a.table[t];
  const std::int64_t at = place(a.places, t, r);
  std::int64_t id = !table.ids     ? at
                    : table.narrow ? static_cast<const std::int32_t*>(table.ids)[at]
                                   : static_cast<const std::int64_t*>(table.ids)[at];
  if (id < 0) id += table.count;
  return id < 0 || id >= table.count ? nullptr : static_cast<const T*>(table.rows) + id * a.n;
}

template <class T, int N>
__device__ inline void add_row(const T* row, std::int64_t i, float (&v)[N]) {
  if (!row) return;
  float more[N];
  read<T, N>(row + i, more);
  for (int k = 0; k < N; ++k) v[k] += more[k];
}

template <class T, int N>
__global__ void embed_rows(const __grid_constant__ EmbeddingLaunch a) {
  MF_DYNAMIC_SHARED(float, shared);
  __shared__ float partial[32];
  Kept<N> kept(shared);
  const std::int64_t start = threadIdx.x * N, step = blockDim.x * N;
  T *y = static_cast<T*>(a.y), *sum = static_cast<T*>(a.sum);
  for (std::int64_t r = first_row(); r < a.rows; r += rows_of_grid()) {
    const T *one = row_of<T>(a, 0, r), *two = row_of<T>(a, 1, r), *three = row_of<T>(a, 2, r);
    float total = 0;
    int slot = 0;
    for (std::int64_t i = start; i < a.n; i += step, ++slot) {
      float v[N] = {};
      add_row<T, N>(one, i, v);
      add_row<T, N>(two, i, v);
      add_row<T, N>(three, i, v);
      if (!a.scale) write<T, N>(v, y + r * a.n + i);
      if (sum) write<T, N>(v, sum + r * a.n + i);
      for (int k = 0; k < N; ++k) total += v[k] = rounded<T>(v[k]);
      if (a.scale) kept.put(slot, v);
    }
    if (!a.scale) continue;
    const float count = static_cast<float>(a.n), mean = block_reduce(total, Sum(), partial) / count;
    float squares = 0;
    slot = 0;
    for (std::int64_t i = start; i < a.n; i += step, ++slot) {
      float v[N];
      kept.get(slot, v);
      for (int k = 0; k < N; ++k) squares += (v[k] - mean) * (v[k] - mean);
    }
    const float factor = 1.0F / sqrtf(block_reduce(squares, Sum(), partial) / count + a.epsilon);
    slot = 0;
    for (std::int64_t i = start; i < a.n; i += step, ++slot) {
      float v[N], s[N], b[N];
      kept.get(slot, v);
      read<T, N>(static_cast<const T*>(a.scale) + i, s);
      read<T, N>(static_cast<const T*>(a.bias) + i, b);
      for (int k = 0; k < N; ++k) v[k] = (v[k] - mean) * factor * s[k] + b[k];
      write<T, N>(v, y + r * a.n + i);
    }
  }
}

template <class T, int N>
bool wide(const EmbeddingLaunch& a) {
  constexpr std::size_t kBytes = sizeof(T) * N;
  bool fits = a.n % N == 0 && aligned(a.scale, kBytes) && aligned(a.bias, kBytes) && aligned(a.y, kBytes) &&
              aligned(a.sum, kBytes);
  for (int t = 0; t < a.tables; ++t) fits = fits && aligned(a.table[t].rows, kBytes);
  return fits;
}

template <class T, int N>
const char* start(const EmbeddingLaunch& a, void* stream) {
  const std::int64_t pieces = ceil_div(a.n, N);
  Launch how = over_rows(a.rows, pieces, stream);
  if (a.scale) how.shared = kept_bytes(how, ceil_div(pieces, how.block.x), N);
  return launch(embed_rows<T, N>, how, a);
}

}  // namespace

const char* start_embedding(const EmbeddingLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) {
    constexpr int kWide = 16 / sizeof(T);
    return wide<T, kWide>(a) ? start<T, kWide>(a, stream) : start<T, 1>(a, stream);
  });
}

}  // namespace modelflow::cuda
