// Group normalization in three steps, so that one large image keeps the whole device busy: moments of parts, those of
// groups from them, the result.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/activation.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

/// Where part `part` of so many begins.
__device__ inline std::int64_t begin_of(std::int64_t part, std::int64_t parts, std::int64_t length) {
  return length * part / parts;
}

/// Channels second: the elements of a group lie side by side.
template <class T>
__global__ void moments_of_planes(const GroupNormLaunch a) {
  __shared__ float partial[32];
  const std::int64_t units = a.image.batch * a.groups * a.image.parts;
  const std::int64_t length = a.image.channels / a.groups * a.image.rows;
  for (std::int64_t unit = first_row(); unit < units; unit += rows_of_grid()) {
    const std::int64_t group = unit / a.image.parts, part = unit % a.image.parts;
    const std::int64_t begin = begin_of(part, a.image.parts, length), end = begin_of(part + 1, a.image.parts, length);
    const T* x = static_cast<const T*>(a.image.x) + group * length;
    float sum = 0, squares = 0;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) sum += static_cast<float>(x[i]);
    const float mean = block_reduce(sum, Sum(), partial) / static_cast<float>(end - begin);
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const float v = static_cast<float>(x[i]) - mean;
      squares += v * v;
    }
    squares = block_reduce(squares, Sum(), partial);
    if (threadIdx.x != 0) continue;
    a.partial[2 * unit] = mean;
    a.partial[2 * unit + 1] = squares;
  }
}

/// Channels last: each channel by itself.
template <class T>
__global__ void moments_of_channels(const GroupNormLaunch a) {
  __shared__ float partial[8][32];
  const Columns columns{a.image.channels};
  for (std::int64_t unit = blockIdx.x; unit < a.image.batch * a.image.parts * columns.stripes(); unit += gridDim.x) {
    const std::int64_t outer = columns.outer(unit), channel = columns.column(unit), part = outer % a.image.parts;
    const std::int64_t begin = begin_of(part, a.image.parts, a.image.rows);
    const std::int64_t end = begin_of(part + 1, a.image.parts, a.image.rows);
    const bool inside = channel < a.image.channels;
    const T* x = static_cast<const T*>(a.image.x) + outer / a.image.parts * a.image.rows * a.image.channels + channel;
    float sum = 0, squares = 0;
    for (std::int64_t i = begin + threadIdx.y; inside && i < end; i += blockDim.y)
      sum += static_cast<float>(x[i * a.image.channels]);
    const float mean = column_reduce(sum, Sum(), partial) / static_cast<float>(end - begin);
    for (std::int64_t i = begin + threadIdx.y; inside && i < end; i += blockDim.y) {
      const float v = static_cast<float>(x[i * a.image.channels]) - mean;
      squares += v * v;
    }
    squares = column_reduce(squares, Sum(), partial);
    if (!inside || threadIdx.y != 0) continue;
    a.partial[2 * (outer * a.image.channels + channel)] = mean;
    a.partial[2 * (outer * a.image.channels + channel) + 1] = squares;
  }
}

/// A warp joins the parts of a group.
__global__ void moments_of_groups(const GroupNormLaunch a) {
  const std::int64_t per = a.image.channels / a.groups, length = a.image.last ? a.image.rows : per * a.image.rows;
  const std::int64_t pieces = a.image.parts * (a.image.last ? per : 1);
  for (std::int64_t unit = first_row(); unit < a.image.batch * a.groups; unit += rows_of_grid()) {
    const auto at = [&](std::int64_t i) {
      if (!a.image.last) return 2 * (unit * pieces + i);
      const std::int64_t part = unit / a.groups * a.image.parts + i / per;
      return 2 * (part * a.image.channels + unit % a.groups * per + i % per);
    };
    const auto count = [&](std::int64_t i) {
      const std::int64_t part = a.image.last ? i / per : i;
      return static_cast<float>(begin_of(part + 1, a.image.parts, length) - begin_of(part, a.image.parts, length));
    };
    const float all = static_cast<float>(per * a.image.rows);
    float sum = 0, squares = 0;
    for (std::int64_t i = threadIdx.x; i < pieces; i += 32) sum += count(i) * a.partial[at(i)];
    const float mean = warp_reduce(sum, Sum()) / all;
    for (std::int64_t i = threadIdx.x; i < pieces; i += 32) {
      const float apart = a.partial[at(i)] - mean;
      squares += a.partial[at(i) + 1] + count(i) * apart * apart;
    }
    squares = warp_reduce(squares, Sum());
    if (threadIdx.x != 0) continue;
    a.moments[2 * unit] = mean;
    a.moments[2 * unit + 1] = 1.0F / sqrtf(squares / all + a.epsilon);
  }
}

template <class T, int N>
__global__ void normalize(const GroupNormLaunch a) {
  const Image& image = a.image;
  const std::int64_t per = image.channels / a.groups, all = image.batch * image.rows * image.channels;
  const T *scale = static_cast<const T*>(a.scale), *bias = static_cast<const T*>(a.bias);
  for (std::int64_t i = thread_of_grid() * N; i < all; i += threads_of_grid() * N) {
    const std::int64_t channel = image.last ? i % image.channels : i / image.rows % image.channels;
    const std::int64_t groups = i / (image.rows * image.channels) * a.groups;
    float v[N];
    read<T, N>(static_cast<const T*>(image.x) + i, v);
    for (int k = 0; k < N; ++k) {
      const std::int64_t c = image.last ? channel + k : channel;
      const float* moments = a.moments + 2 * (groups + c / per);
      v[k] = (v[k] - moments[0]) * moments[1] * static_cast<float>(scale[c]) + static_cast<float>(bias[c]);
    }
    activate_each(a.activation, v);
    write<T, N>(v, static_cast<T*>(a.y) + i);
  }
}

template <class T>
const char* start(const GroupNormLaunch& a, void* stream) {
  const Image& image = a.image;
  const std::int64_t units = image.batch * a.groups, all = image.batch * image.rows * image.channels;
  const char* why =
      image.last ? launch(moments_of_channels<T>, over_columns(image.batch * image.parts, image.channels, stream), a)
                 : launch(moments_of_planes<T>, {blocks_for(units * image.parts, 1), 256, 0, stream_of(stream)}, a);
  if (why) return why;
  why = launch(moments_of_groups, {blocks_for(units, 4), {32, 4}, 0, stream_of(stream)}, a);
  if (why) return why;
  constexpr int kWide = 16 / sizeof(T);
  const bool wide = (image.last ? image.channels : image.rows) % kWide == 0 && aligned(image.x, 16) && aligned(a.y, 16);
  if (wide) return launch(normalize<T, kWide>, over_units(all / kWide, stream), a);
  return launch(normalize<T, 1>, over_units(all, stream), a);
}

}  // namespace

const char* start_group_norm(const GroupNormLaunch& a, void* stream) {
  return with_type(a.image.number, [&]<class T>(T) { return start<T>(a, stream); });
}

}  // namespace modelflow::cuda
