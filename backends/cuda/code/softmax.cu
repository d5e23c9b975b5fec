// Softmax and its logarithm: a row is read once where shared memory keeps its scores, else three times, mostly from the
// second cache. Along other axes than the last, columns side by side.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

constexpr float kInfinity = __builtin_huge_valf();

/// What a mask makes of N scores from `at` on in the mask.
template <class T, int N>
__device__ inline void masked(const SoftmaxLaunch& a, std::int64_t at, float (&v)[N]) {
  if (a.mask_numbers) {
    const T* from = static_cast<const T*>(a.mask_numbers) + at;
    float m[N];
    if (a.mask_step != 0) read<T, N>(from, m);
    for (int k = 0; k < N; ++k) v[k] += a.mask_step != 0 ? m[k] : static_cast<float>(*from);
    return;
  }
  Pack<std::uint8_t, N> flags;
  if (a.mask_step != 0)
    flags = *reinterpret_cast<const Pack<std::uint8_t, N>*>(a.mask_flags + at);
  else
    for (int k = 0; k < N; ++k) flags.of[k] = a.mask_flags[at];
  for (int k = 0; k < N; ++k) {
    const bool flag = flags.of[k] != 0;
    const float number = flag ? a.on : a.off;
    v[k] = (flag ? a.on_replaces : a.off_replaces) ? number : v[k] + number;
  }
}

/// The scores of row r from `i` on. A product that ran into the difference behind it would move scores far from zero
/// apart from their largest: it is rounded.
template <class T, int N>
__device__ inline void scores(const SoftmaxLaunch& a, std::int64_t r, std::int64_t i, std::int64_t mask,
                              float (&v)[N]) {
  read<T, N>(static_cast<const T*>(a.x) + r * a.n + i, v);
  for (int k = 0; k < N; ++k) v[k] = __fmul_rn(v[k], a.scale);
  if (a.mask_numbers || a.mask_flags) masked<T, N>(a, mask + i * a.mask_step, v);
}

template <class T, int N, bool kKept>
__global__ void softmax_rows(const __grid_constant__ SoftmaxLaunch a) {
  MF_DYNAMIC_SHARED(float, shared);
  __shared__ float partial[32];
  Kept<N> kept(shared);
  const std::int64_t start = threadIdx.x * N, step = blockDim.x * N;
  for (std::int64_t r = first_row(); r < a.outer; r += rows_of_grid()) {
    const std::int64_t mask = a.mask_numbers || a.mask_flags ? place(a.places, 1, r * a.n) : 0;
    const auto again = [&](std::int64_t i, int slot, float(&v)[N]) {
      if (kKept)
        kept.get(slot, v);
      else
        scores<T, N>(a, r, i, mask, v);
    };
    float most = -kInfinity, sum = 0;
    int slot = 0;
    for (std::int64_t i = start; i < a.n; i += step, ++slot) {
      float v[N];
      scores<T, N>(a, r, i, mask, v);
      if (kKept) kept.put(slot, v);
      for (int k = 0; k < N; ++k) most = Max()(most, v[k]);
    }
    most = block_reduce(most, Max(), partial);
    slot = 0;
    for (std::int64_t i = start; i < a.n; i += step, ++slot) {
      float v[N];
      again(i, slot, v);
      for (int k = 0; k < N; ++k) {
        const float e = expf(v[k] - most);
        sum += e;
        v[k] = a.log ? v[k] - most : e;
      }
      if (kKept) kept.put(slot, v);
    }
    sum = block_reduce(sum, Sum(), partial);
    const float less = logf(sum), factor = 1.0F / sum;
    slot = 0;
    for (std::int64_t i = start; i < a.n; i += step, ++slot) {
      float v[N];
      again(i, slot, v);
      if (!kKept)
        for (int k = 0; k < N; ++k) v[k] = a.log ? v[k] - most : expf(v[k] - most);
      for (int k = 0; k < N; ++k) v[k] = a.log ? v[k] - less : v[k] * factor;
      write<T, N>(v, static_cast<T*>(a.y) + r * a.n + i);
    }
  }
}

template <class T>
__global__ void softmax_columns(const __grid_constant__ SoftmaxLaunch a) {
  __shared__ float partial[8][32];
  const Columns columns{a.inner};
  for (std::int64_t unit = blockIdx.x; unit < a.outer * columns.stripes(); unit += gridDim.x) {
    const std::int64_t column = columns.column(unit), first = columns.outer(unit) * a.n * a.inner + column;
    const bool inside = column < a.inner;
    const T* x = static_cast<const T*>(a.x) + first;
    T* y = static_cast<T*>(a.y) + first;
    const auto score = [&](std::int64_t i) { return __fmul_rn(static_cast<float>(x[i * a.inner]), a.scale); };
    float most = -kInfinity, sum = 0;
    for (std::int64_t i = threadIdx.y; inside && i < a.n; i += blockDim.y) most = Max()(most, score(i));
    most = column_reduce(most, Max(), partial);
    for (std::int64_t i = threadIdx.y; inside && i < a.n; i += blockDim.y) sum += expf(score(i) - most);
    sum = column_reduce(sum, Sum(), partial);
    const float less = logf(sum), factor = 1.0F / sum;
    for (std::int64_t i = threadIdx.y; inside && i < a.n; i += blockDim.y) {
      const float v = score(i) - most;
      y[i * a.inner] = static_cast<T>(a.log ? v - less : expf(v) * factor);
    }
  }
}

template <class T, int N>
const char* start(const SoftmaxLaunch& a, void* stream) {
  const std::int64_t pieces = ceil_div(a.n, N);
  Launch how = over_rows(a.outer, pieces, stream);
  const std::int64_t slots = ceil_div(pieces, how.block.x);
  if (slots * N * how.block.x * how.block.y > kGrantedShared / 4) return launch(softmax_rows<T, N, false>, how, a);
  how.shared = kept_bytes(how, slots, N);
  return launch(softmax_rows<T, N, true>, how, a);
}

template <class T, int N>
bool wide(const SoftmaxLaunch& a) {
  if (a.n % N != 0 || !aligned(a.x, sizeof(T) * N) || !aligned(a.y, sizeof(T) * N)) return false;
  return a.mask_step == 0 || (aligned(a.mask_numbers, sizeof(T) * N) && aligned(a.mask_flags, N));
}

}  // namespace

const char* start_softmax(const SoftmaxLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) {
    constexpr int kWide = 16 / sizeof(T);
    if (a.inner != 1) return launch(softmax_columns<T>, over_columns(a.outer, a.inner, stream), a);
    return wide<T, kWide>(a) ? start<T, kWide>(a, stream) : start<T, 1>(a, stream);
  });
}

}  // namespace modelflow::cuda
