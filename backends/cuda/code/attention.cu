// Attention without a matrix of scores: 64 queries of a head at a time on tensor cores, else a block for each query.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/online.h"
#include "backends/cuda/device/scores.h"

namespace modelflow::cuda {
namespace {

template <class T>
struct Head {
  const T *q, *k, *v;
  T* y;

  __device__ Head(const AttentionLaunch& a, std::int64_t batch, std::int64_t head)
      : q(start(a.q, batch, head)),
        k(start(a.k, batch, head / a.group)),
        v(start(a.v, batch, head / a.group)),
        y(const_cast<T*>(start(a.y, batch, head))) {}

  __device__ static const T* start(const HeadPlace& p, std::int64_t batch, std::int64_t head) {
    return static_cast<const T*>(p.data) + batch * p.batch + head * p.head;
  }
};

/// The result of a row for a column of the values. What the guard makes 0 is multiplied by them all the same: of those
/// that are not finite comes NaN.
template <class T>
__device__ inline float ended(const AttentionLaunch& a, const Online& row, float sum, const T* v) {
  if (a.keys == 0) return 0;
  if (!row.nothing()) return sum / row.sum;
  if (!a.nan_guard) return NAN;
  float none = 0;
  for (std::int64_t key = 0; key < a.keys; ++key) none += 0 * static_cast<float>(v[key * a.v.row]);
  return none;
}

/// How many keys the queries up to `last` may see.
__device__ inline std::int64_t seen(const AttentionLaunch& a, std::int64_t last) {
  return a.stops && last + 1 < a.keys ? last + 1 : a.keys;
}

/// So many queries to a block.
__host__ __device__ inline LargeGrid grid_of(const AttentionLaunch& a, std::int64_t queries) {
  return {ceil_div(a.queries, queries), a.heads, a.batch};
}

constexpr int kChunk = 1024, kThreads = 128, kMostEach = 4;  // scores at a time; results of a thread

/// A block for each query: scores of a chunk of keys in shared memory, then their weighted sum, a column for each
/// thread.
template <class T>
__global__ void __launch_bounds__(kThreads) plain_attention(const AttentionLaunch a) {
  __shared__ float scores[kChunk], partial[32];
  const auto [row, head, batch] = grid_of(a, 1).here();
  if (batch >= a.batch) return;
  const Head<T> at(a, batch, head);
  const Scores<T> changed(a, batch, head);
  const T* const q = at.q + row * a.q.row;
  const int thread = static_cast<int>(threadIdx.x);
  float sums[kMostEach] = {};
  Online online;
  const std::int64_t keys = seen(a, row);
  for (std::int64_t first = 0; first < keys; first += kChunk) {
    const int here = keys - first < kChunk ? static_cast<int>(keys - first) : kChunk;
    float largest = -INFINITY;
    for (int i = thread; i < here; i += kThreads) {
      const T* const k = at.k + (first + i) * a.k.row;
      float score = 0;
      for (int d = 0; d < a.depth; ++d) score += static_cast<float>(q[d]) * static_cast<float>(k[d]);
      scores[i] = changed(score, row, first + i);
      largest = Max()(largest, scores[i]);
    }
    const float factor = online.grow(block_reduce(largest, Max(), partial));
    float sum = 0;
    for (int i = thread; i < here; i += kThreads) {
      scores[i] = online.weight(scores[i]);
      sum += scores[i];
    }
    online.sum += block_reduce(sum, Sum(), partial);
    __syncthreads();
    for (int e = 0; e < kMostEach; ++e) {
      const int column = thread + e * kThreads;
      if (column >= a.width) break;
      float weighted = 0;
      for (int i = 0; i < here; ++i) weighted += scores[i] * static_cast<float>(at.v[(first + i) * a.v.row + column]);
      sums[e] = sums[e] * factor + weighted;
    }
    __syncthreads();
  }
  for (int e = 0; e < kMostEach; ++e) {
    const int column = thread + e * kThreads;
    if (column < a.width) at.y[row * a.y.row + column] = static_cast<T>(ended(a, online, sums[e], at.v + column));
  }
}

constexpr int kRows = 64, kWarps = 4;  // of a block: 16 queries for each warp, 64 keys at a time

/// 64 rows of a head in shared memory.
template <int size>
struct HeadTile {
  static constexpr int kRows = 64, kColumns = size, kStride = size + 8, kElements = kRows * kStride;
};

template <class T>
__device__ inline std::uint32_t pair(float low, float high) {
  const T both[2] = {T(low), T(high)};
  std::uint32_t word = 0;
  memcpy(&word, both, sizeof word);
  return word;
}

/// The queries of a warp against 64 keys: scores, weights, and the weighted sum of values. A lane has two rows of
/// fragments, lane / 4 and 8 further.
template <class T, int size>
struct WarpRows {
  using Part = HeadTile<size>;
  float sums[size / 8][4] = {};
  Online online[2];

  __device__ void take(const AttentionLaunch& a, const Scores<T>& changed, const T* q, const T* k, const T* v,
                       std::int64_t first_row, std::int64_t first_key, std::int64_t keys) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    float scores[8][4] = {};
#pragma unroll
    for (int d = 0; d < size; d += 16) {
      std::uint32_t left[4];
      fragment_a<T, Part, false>(left, q, warp * 16, d);
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        std::uint32_t right[4];
        fragments_b<T, Part, false>(right, k, j * 8, d);
        const std::uint32_t one[2] = {right[0], right[1]}, two[2] = {right[2], right[3]};
        mma(scores[j], left, one, T());
        mma(scores[j + 1], left, two, T());
      }
    }
    float largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const std::int64_t row = first_row + warp * 16 + lane / 4 + 8 * (r / 2);
        const std::int64_t key = first_key + j * 8 + lane % 4 * 2 + r % 2;
        scores[j][r] = key < keys && row < a.queries ? changed(scores[j][r], row, key) : -INFINITY;
        largest[r / 2] = Max()(largest[r / 2], scores[j][r]);
      }
    weigh(scores, largest, v);
  }

 private:
  __device__ void weigh(float (&scores)[8][4], float (&largest)[2], const T* v) {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // four lanes have a row
      for (int apart = 1; apart < 4; apart *= 2)
        largest[half] = Max()(largest[half], __shfl_xor_sync(~0U, largest[half], apart));
      factor[half] = online[half].grow(largest[half]);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        scores[j][r] = online[r / 2].weight(scores[j][r]);
        online[r / 2].sum += scores[j][r];  // of this lane's keys; lanes add up at the end
      }
#pragma unroll
    for (int c = 0; c < size / 8; ++c)
#pragma unroll
      for (int r = 0; r < 4; ++r) sums[c][r] *= factor[r / 2];
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const std::uint32_t left[4] = {pair<T>(scores[j][0], scores[j][1]), pair<T>(scores[j][2], scores[j][3]),
                                     pair<T>(scores[j + 1][0], scores[j + 1][1]),
                                     pair<T>(scores[j + 1][2], scores[j + 1][3])};
#pragma unroll
      for (int c = 0; c < size / 8; c += 2) {
        std::uint32_t right[4];
        fragments_b<T, Part, true>(right, v, c * 8, j * 8);
        const std::uint32_t one[2] = {right[0], right[1]}, two[2] = {right[2], right[3]};
        mma(sums[c], left, one, T());
        mma(sums[c + 1], left, two, T());
      }
    }
  }
};

template <class T, int size>
__global__ void __launch_bounds__(32 * kWarps) tensor_attention(const AttentionLaunch a) {
  MF_DYNAMIC_SHARED(T, shared);
  using Part = HeadTile<size>;
  const auto [tile, head, batch] = grid_of(a, kRows).here();
  if (batch >= a.batch) return;
  const std::int64_t first_row = tile * kRows;
  const Head<T> at(a, batch, head);
  const Scores<T> changed(a, batch, head);
  T *const q = shared, *const k = q + Part::kElements, *const v = k + Part::kElements;
  WarpRows<T, size> rows;
  fetch_tile<T, Part, 32 * kWarps>(q, at.q, a.q.row, first_row, 0, a.queries, a.depth, a.wide_q);
  const std::int64_t keys = seen(a, first_row + kRows - 1);
  for (std::int64_t first = 0; first < keys; first += kRows) {
    fetch_tile<T, Part, 32 * kWarps>(k, at.k, a.k.row, first, 0, a.keys, a.depth, a.wide_k);
    fetch_tile<T, Part, 32 * kWarps>(v, at.v, a.v.row, first, 0, a.keys, a.width, a.wide_v);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    rows.take(a, changed, q, k, v, first_row, first, keys);
    __syncthreads();
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    for (int apart = 1; apart < 4; apart *= 2)
      rows.online[half].sum += __shfl_xor_sync(~0U, rows.online[half].sum, apart);
#pragma unroll
  for (int c = 0; c < size / 8; ++c)
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const std::int64_t row = first_row + warp * 16 + lane / 4 + 8 * (r / 2);
      const int column = c * 8 + lane % 4 * 2 + r % 2;
      if (row < a.queries && column < a.width)
        at.y[row * a.y.row + column] = T(ended(a, rows.online[r / 2], rows.sums[c][r], at.v + column));
    }
}

bool wide(const HeadPlace& p, int size) {
  return size % 8 == 0 && p.batch % 8 == 0 && p.head % 8 == 0 && p.row % 8 == 0 && aligned(p.data, 16);
}

template <class T, int size>
const char* start_tensor(const AttentionLaunch& a, void* stream) {
  constexpr auto kShared = static_cast<unsigned>(3 * HeadTile<size>::kElements * sizeof(T));
  return launch(tensor_attention<T, size>, grid_of(a, kRows).launch(32 * kWarps, kShared, stream), a);
}

template <class T>
const char* start(AttentionLaunch a, void* stream) {
  if (!a.tensor_cores) {
    if (a.width > kMostEach * kThreads) return "heads of values are too long";
    return launch(plain_attention<T>, grid_of(a, 1).launch(kThreads, 0, stream), a);
  }
  if constexpr (sizeof(T) == 2) {
    a.wide_q = wide(a.q, a.depth);
    a.wide_k = wide(a.k, a.depth);
    a.wide_v = wide(a.v, a.width);
    const int size = a.depth > a.width ? a.depth : a.width;
    if (size <= 32) return start_tensor<T, 32>(a, stream);
    return size <= 64 ? start_tensor<T, 64>(a, stream) : start_tensor<T, 128>(a, stream);
  }
  return "tensor cores take 16-bit numbers";
}

}  // namespace

const char* start_attention(const AttentionLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) { return start<T>(a, stream); });
}

}  // namespace modelflow::cuda
