// Attention of channels to channels: scores of each head over shares of the tokens, which have too few heads to keep a
// device busy; then weights, where the shares are added up in order; then tokens mixed by the weights.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/head_product.h"

namespace modelflow::cuda {
namespace {

/// Squares of each column of queries and keys, summed over a share of the tokens.
template <class T>
__global__ void sum_squares(const ChannelAttentionLaunch a) {
  __shared__ float partial[8][32];
  const HeadsLaunch& of = a.heads;
  const Columns columns{of.heads * of.size};
  for (std::int64_t unit = blockIdx.x; unit < 2 * of.batch * a.parts * columns.stripes(); unit += gridDim.x) {
    const std::int64_t column = columns.column(unit), outer = columns.outer(unit), part = outer % a.parts;
    const std::int64_t n = outer / a.parts, head = column / of.size;
    const bool inside = column < columns.inner, keys = n >= of.batch;
    const HeadPlace& place = keys ? of.k : of.q;
    const T* x = static_cast<const T*>(place.data) + (keys ? n - of.batch : n) * place.batch + head * place.head +
                 column % of.size;
    const std::int64_t behind = (part + 1) * a.part < of.tokens ? (part + 1) * a.part : of.tokens;
    float sum = 0;
    for (std::int64_t token = part * a.part + threadIdx.y; inside && token < behind; token += blockDim.y) {
      const auto number = static_cast<float>(x[token * place.row]);
      sum += number * number;
    }
    sum = column_reduce(sum, Sum(), partial);
    if (inside && threadIdx.y == 0)
      a.squares[((n * of.heads + head) * a.parts + part) * of.size + column % of.size] = sum;
  }
}

/// What a column is multiplied by to have unit length; units of keys lie behind those of queries.
__device__ inline float to_unit(const ChannelAttentionLaunch& a, std::int64_t unit, std::int64_t column) {
  float sum = 0;
  for (std::int64_t part = 0; part < a.parts; ++part) sum += a.squares[(unit * a.parts + part) * a.heads.size + column];
  float length = sqrtf(sum);
  if (length < a.shortest) length = a.shortest;  // NaN stays
  if (length > a.longest) length = a.longest;
  return 1.0F / length;
}

/// A row of the scores of a head in all shares becomes one of weights.
template <class T>
__global__ void weigh_channels(const ChannelAttentionLaunch a) {
  __shared__ float partial[32];
  const HeadsLaunch& of = a.heads;
  const std::int64_t units = of.batch * of.heads;
  for (std::int64_t r = first_row(); r < units * of.size; r += rows_of_grid()) {
    const std::int64_t unit = r / of.size, i = r % of.size;
    float* const scores = a.scores + (unit * a.parts * of.size + i) * of.size;
    T* const weights = static_cast<T*>(a.weights) + r * a.row;
    float factor = of.scale;
    if (a.temperature) factor *= static_cast<float>(static_cast<const T*>(a.temperature)[unit % of.heads]);
    if (a.normalize) factor *= to_unit(a, unit, i);
    float most = -INFINITY, sum = 0;
    for (std::int64_t j = threadIdx.x; j < of.size; j += blockDim.x) {
      float score = scores[j];
      for (std::int64_t part = 1; part < a.parts; ++part) score += scores[part * of.size * of.size + j];
      if (a.normalize) score *= to_unit(a, units + unit, j);
      scores[j] = __fmul_rn(score, factor);
      most = Max()(most, scores[j]);
    }
    most = block_reduce(most, Max(), partial);
    for (std::int64_t j = threadIdx.x; j < of.size; j += blockDim.x) sum += scores[j] = expf(scores[j] - most);
    sum = 1.0F / block_reduce(sum, Sum(), partial);
    for (std::int64_t j = threadIdx.x; j < of.size; j += blockDim.x) weights[j] = static_cast<T>(scores[j] * sum);
  }
}

template <class T>
const char* start(const ChannelAttentionLaunch& a, void* stream) {
  const HeadsLaunch& of = a.heads;
  const std::int64_t area = of.size * of.size, parts = a.parts;
  HeadProduct scores = {of.batch, of.heads, of.size, of.size, of.tokens, of.q, of.k, {}};
  scores.y = {a.scores, of.heads * parts * area, parts * area, of.size};
  scores.parts = parts, scores.part = a.part, scores.y_part = area;
  if (const char* why = multiply_heads<T, float, true, true>(scores, of.tensor_cores, stream)) return why;
  if (a.normalize) {
    const Launch how = over_columns(2 * of.batch * parts, of.heads * of.size, stream);
    if (const char* why = launch(sum_squares<T>, how, a)) return why;
  }
  if (const char* why = launch(weigh_channels<T>, over_rows(of.batch * of.heads * of.size, of.size, stream), a))
    return why;
  HeadProduct mixed = {of.batch, of.heads, of.tokens, of.size, of.size, of.v, {}, of.y};
  mixed.b = {a.weights, of.heads * of.size * a.row, of.size * a.row, a.row};
  return multiply_heads<T, T, false, false>(mixed, of.tensor_cores, stream);
}

}  // namespace

const char* start_channel_attention(const ChannelAttentionLaunch& a, void* stream) {
  return with_type(a.heads.number, [&]<class T>(T) { return start<T>(a, stream); });
}

}  // namespace modelflow::cuda
