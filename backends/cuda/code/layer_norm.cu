// Layer and RMS normalization: a block (or a warp, where rows are short) reads a row once, keeps it in shared memory
// and writes it once: what DRAM gives is the bound.
#include <algorithm>

#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

template <class T, int N>
__global__ void layer_norm_rows(const LayerNormLaunch a) {
  MF_DYNAMIC_SHARED(float, row);
  __shared__ float partial[32];
  const auto n = static_cast<int>(a.n);
  const std::int64_t first = block_of_grid() * n;
  if (block_of_grid() >= a.rows) return;
  const int start = static_cast<int>(threadIdx.x) * N, step = static_cast<int>(blockDim.x) * N;
  const T *x = static_cast<const T*>(a.x), *residual = static_cast<const T*>(a.residual);
  const T *scale = static_cast<const T*>(a.scale), *bias = static_cast<const T*>(a.bias);
  T *y = static_cast<T*>(a.y), *sum = static_cast<T*>(a.sum);

  float total = 0;
  for (int i = start; i < n; i += step) {
    float v[N];
    read<T, N>(x + place(a.places, 0, first + i), v);
    if (residual && !a.after) {
      float r[N];
      read<T, N>(residual + place(a.places, 1, first + i), r);
      for (int k = 0; k < N; ++k) v[k] = rounded<T>(v[k] + r[k]);
      if (sum) write<T, N>(v, sum + first + i);
    }
    for (int k = 0; k < N; ++k) {
      row[i + k] = v[k];
      total += bias ? v[k] : v[k] * v[k];
    }
  }
  float mean = 0, moment = block_reduce(total, Sum(), partial) / static_cast<float>(n);
  if (bias) {
    mean = moment;
    float squares = 0;
    for (int i = start; i < n; i += step)
      for (int k = 0; k < N; ++k) squares += (row[i + k] - mean) * (row[i + k] - mean);
    moment = block_reduce(squares, Sum(), partial) / static_cast<float>(n);
  }
  const float factor = 1.0F / sqrtf(moment + a.epsilon);
  for (int i = start; i < n; i += step) {
    float s[N], b[N] = {}, v[N];
    read<T, N>(scale + i, s);
    if (bias) read<T, N>(bias + i, b);
    for (int k = 0; k < N; ++k) v[k] = (row[i + k] - mean) * factor * s[k] + b[k];
    if (residual && a.after) {
      float r[N];
      read<T, N>(residual + place(a.places, 1, first + i), r);
      for (int k = 0; k < N; ++k) v[k] = rounded<T>(v[k]) + r[k];
    }
    write<T, N>(v, y + first + i);
  }
}

/// Several elements at once where every row starts on such a border and has no neighbours that repeat.
template <class T>
bool wide(const LayerNormLaunch& a) {
  constexpr std::size_t kBytes = 16;
  if (a.n % (kBytes / sizeof(T)) != 0 || !a.places.whole[0] || (a.residual && !a.places.whole[1])) return false;
  return aligned(a.x, kBytes) && aligned(a.residual, kBytes) && aligned(a.scale, kBytes) && aligned(a.bias, kBytes) &&
         aligned(a.y, kBytes) && aligned(a.sum, kBytes);
}

template <class T, int N>
const char* start(const LayerNormLaunch& a, void* stream) {
  const std::int64_t pieces = (a.n + N - 1) / N;
  const auto threads = static_cast<unsigned>(std::clamp<std::int64_t>((pieces + 31) / 32 * 32, 32, 512));
  const auto bytes = static_cast<unsigned>(a.n * sizeof(float));
  return launch(layer_norm_rows<T, N>, LargeGrid{a.rows, 1, 1}.launch(threads, bytes, stream), a);
}

}  // namespace

const char* start_layer_norm(const LayerNormLaunch& a, void* stream) {
  return with_type(
      a.number, [&]<class T>(T) { return wide<T>(a) ? start<T, 16 / sizeof(T)>(a, stream) : start<T, 1>(a, stream); });
}

}  // namespace modelflow::cuda
