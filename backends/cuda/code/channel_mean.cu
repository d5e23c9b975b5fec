// Means of channels: sums of parts of the rows by all multiprocessors, and the sum of those.
#include "backends/cuda/code/channel_sums.h"
#include "backends/cuda/code/launchers.h"

namespace modelflow::cuda {
namespace {

template <class T>
__global__ void sum_last(const Image image, float* sums) {
  __shared__ float partial[8][32];
  const Columns columns{image.channels};
  for (std::int64_t unit = blockIdx.x; unit < image.batch * image.parts * columns.stripes(); unit += gridDim.x) {
    const std::int64_t outer = columns.outer(unit), channel = columns.column(unit), part = outer % image.parts;
    const std::int64_t begin = image.rows * part / image.parts, end = image.rows * (part + 1) / image.parts;
    const bool inside = channel < image.channels;
    const T* x = static_cast<const T*>(image.x) + outer / image.parts * image.rows * image.channels + channel;
    float sum = 0;
    for (std::int64_t i = begin + threadIdx.y; inside && i < end; i += blockDim.y)
      sum += static_cast<float>(x[i * image.channels]);
    sum = column_reduce(sum, Sum(), partial);
    if (inside && threadIdx.y == 0) sums[outer * image.channels + channel] = sum;
  }
}

template <class T>
__global__ void sum_planes(const Image image, float* sums) {
  __shared__ float partial[32];
  for (std::int64_t plane = first_row(); plane < image.batch * image.channels; plane += rows_of_grid()) {
    const T* x = static_cast<const T*>(image.x) + plane * image.rows;
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < image.rows; i += blockDim.x) sum += static_cast<float>(x[i]);
    sum = block_reduce(sum, Sum(), partial);
    if (threadIdx.x == 0) sums[plane] = sum;
  }
}

template <class T>
__global__ void write_means(const ChannelMeanLaunch a) {
  for (std::int64_t i = thread_of_grid(); i < a.image.batch * a.image.channels; i += threads_of_grid())
    static_cast<T*>(a.y)[i] = stored<T>(mean_of(a.image, a.sums, i / a.image.channels, i % a.image.channels));
}

}  // namespace

const char* sum_channels(const Image& image, float* sums, void* stream) {
  return with_type_or_bytes(image.number, [&]<class T>(T) {
    if (!image.last)
      return launch(sum_planes<T>, over_rows(image.batch * image.channels, image.rows, stream), image, sums);
    return launch(sum_last<T>, over_columns(image.batch * image.parts, image.channels, stream), image, sums);
  });
}

const char* start_channel_mean(const ChannelMeanLaunch& a, void* stream) {
  if (const char* why = sum_channels(a.image, a.sums, stream)) return why;
  return with_type_or_bytes(a.image.number, [&]<class T>(T) {
    return launch(write_means<T>, over_units(a.image.batch * a.image.channels, stream), a);
  });
}

}  // namespace modelflow::cuda
