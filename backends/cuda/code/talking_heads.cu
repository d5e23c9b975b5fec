// Attention whose heads are mixed, before the softmax and behind it: scores of all heads, the weights of all heads for
// one query at a time, and their products with the values.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/head_product.h"

namespace modelflow::cuda {
namespace {

constexpr int kWarps = 8, kTogether = 8;

/// use(h, sum over g of weights[h, g] * from[g]) for a number of each head, some heads at a time.
template <class T, class Use>
__device__ inline void mix(const T* weights, std::int64_t heads, const float* from, std::int64_t step, Use use) {
  for (std::int64_t first = 0; first < heads; first += kTogether) {
    float sums[kTogether] = {};
    for (std::int64_t g = 0; g < heads; ++g) {
      const float x = from[g * step];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const std::int64_t h = first + i < heads ? first + i : heads - 1;
        sums[i] += static_cast<float>(weights[h * heads + g]) * x;
      }
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      if (first + i < heads) use(first + i, sums[i]);
  }
}

/// A block for each query: its scores in all heads, from first to last. Weights take the place of the scores that they
/// come from, which nobody reads any more.
template <class T>
__global__ void talk(const TalkingHeadsLaunch a) {
  const HeadsLaunch& of = a.heads;
  const std::int64_t step = of.tokens * a.row, start = threadIdx.y * 32 + threadIdx.x;
  constexpr std::int64_t kWider = sizeof(float) / sizeof(T);
  for (std::int64_t unit = blockIdx.x; unit < of.batch * of.tokens; unit += gridDim.x) {
    const std::int64_t row = (unit / of.tokens * of.heads * of.tokens + unit % of.tokens) * a.row;
    float* const mixed = a.mixed + row;
    for (std::int64_t key = start; key < of.tokens; key += 32 * kWarps)
      mix(static_cast<const T*>(a.before), of.heads, a.scores + row + key, step,
          [&](std::int64_t h, float sum) { mixed[h * step + key] = sum; });
    __syncthreads();
    for (std::int64_t h = threadIdx.y; h < of.heads; h += kWarps) {
      float* const line = mixed + h * step;
      float most = -INFINITY, sum = 0;
      for (std::int64_t key = threadIdx.x; key < of.tokens; key += 32) most = Max()(most, line[key]);
      most = warp_reduce(most, Max());
      for (std::int64_t key = threadIdx.x; key < of.tokens; key += 32) sum += line[key] = expf(line[key] - most);
      sum = 1.0F / warp_reduce(sum, Sum());
      for (std::int64_t key = threadIdx.x; key < of.tokens; key += 32) line[key] *= sum;
    }
    __syncthreads();
    T* const weights = reinterpret_cast<T*>(a.scores + row);
    for (std::int64_t key = start; key < of.tokens; key += 32 * kWarps)
      mix(static_cast<const T*>(a.after), of.heads, mixed + key, step, [&](std::int64_t h, float sum) {
        if (a.bias) sum += static_cast<float>(static_cast<const T*>(a.bias)[h]);
        weights[h * step * kWider + key] = static_cast<T>(sum);
      });
  }
}

template <class T>
const char* start(const TalkingHeadsLaunch& a, void* stream) {
  const HeadsLaunch& of = a.heads;
  const std::int64_t step = of.tokens * a.row, wider = sizeof(float) / sizeof(T);
  HeadProduct scores = {of.batch, of.heads, of.tokens, of.tokens, of.size, of.q, of.k, {}, of.scale};
  scores.y = {a.scores, of.heads * step, step, a.row};
  if (const char* why = multiply_heads<T, float, false, false>(scores, of.tensor_cores, stream)) return why;
  const Launch how = {blocks_for(of.batch * of.tokens, 1), {32, kWarps}, 0, stream_of(stream)};
  if (const char* why = launch(talk<T>, how, a)) return why;
  HeadProduct context = {of.batch, of.heads, of.tokens, of.size, of.tokens, {}, of.v, of.y};
  context.a = {a.scores, of.heads * step * wider, step * wider, a.row * wider};
  return multiply_heads<T, T, false, true>(context, of.tensor_cores, stream);
}

}  // namespace

const char* start_talking_heads(const TalkingHeadsLaunch& a, void* stream) {
  return with_type(a.heads.number, [&]<class T>(T) { return start<T>(a, stream); });
}

}  // namespace modelflow::cuda
