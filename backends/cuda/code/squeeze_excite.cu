// Squeeze and excitation: means, two products of a matrix and a vector with a warp for each row, and the product with
// x.
#include "backends/cuda/code/channel_sums.h"
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/activation.h"

namespace modelflow::cuda {
namespace {

/// bias[row] + the product of a row of w with n numbers, of which of(i) is one: a warp's, all lanes get it.
template <class T, class F>
__device__ inline float dot(const void* w, const void* bias, std::int64_t row, std::int64_t n, F of) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += 32)
    sum += static_cast<float>(static_cast<const T*>(w)[row * n + i]) * of(i);
  return warp_reduce(sum, Sum()) + static_cast<float>(static_cast<const T*>(bias)[row]);
}

template <class T>
__global__ void squeeze(const ExciteLaunch a) {
  for (std::int64_t r = first_row(); r < a.image.batch * a.squeezed; r += rows_of_grid()) {
    const std::int64_t n = r / a.squeezed;
    const auto mean = [&](std::int64_t c) { return number_of(a.x_steps, mean_of(a.image, a.sums, n, c)); };
    const float v = dot<T>(a.w1, a.b1, r % a.squeezed, a.image.channels, mean);
    if (threadIdx.x == 0) a.hidden[r] = activated(a.activation, v);
  }
}

template <class T>
__global__ void excite(const ExciteLaunch a) {
  const std::int64_t channels = a.image.channels;
  for (std::int64_t r = first_row(); r < a.image.batch * channels; r += rows_of_grid()) {
    const float* hidden = a.hidden + r / channels * a.squeezed;
    const float v = dot<T>(a.w2, a.b2, r % channels, a.squeezed, [&](std::int64_t i) { return hidden[i]; });
    if (threadIdx.x == 0) a.factors[r] = activated(a.gate, v);
  }
}

template <class T, int N>
__global__ void multiply(const ExciteLaunch a) {
  const Image& image = a.image;
  const std::int64_t of_image = image.rows * image.channels;
  for (std::int64_t i = thread_of_grid() * N; i < image.batch * of_image; i += threads_of_grid() * N) {
    const std::int64_t plane = image.last ? i / of_image * image.channels + i % image.channels : i / image.rows;
    float v[N];
    read<T, N>(static_cast<const T*>(image.x) + i, v);
    for (int k = 0; k < N; ++k) {
      if (sizeof(T) == 1) v[k] = number_of(a.x_steps, v[k]);
      const float scaled = v[k] * a.factors[image.last ? plane + k : plane];
      v[k] = a.skip ? v[k] + scaled : scaled;
      if (sizeof(T) == 1) v[k] = step_of(a.y_steps, v[k]);
    }
    write<T, N>(v, static_cast<T*>(a.y) + i);
  }
}

/// T: of x and y, W: of the weights.
template <class T, class W>
const char* start(const ExciteLaunch& a, void* stream) {
  const Image& image = a.image;
  const auto warps = [&](std::int64_t rows) { return Launch{blocks_for(rows, 4), {32, 4}, 0, stream_of(stream)}; };
  if (const char* why = launch(squeeze<W>, warps(image.batch * a.squeezed), a)) return why;
  if (const char* why = launch(excite<W>, warps(image.batch * image.channels), a)) return why;
  constexpr int kWide = 16 / sizeof(T);
  const std::int64_t all = image.batch * image.rows * image.channels;
  if ((image.last ? image.channels : image.rows) % kWide == 0 && aligned(image.x, 16) && aligned(a.y, 16))
    return launch(multiply<T, kWide>, over_units(all / kWide, stream), a);
  return launch(multiply<T, 1>, over_units(all, stream), a);
}

}  // namespace

const char* start_squeeze_excite(const ExciteLaunch& a, void* stream) {
  if (const char* why = sum_channels(a.image, a.sums, stream)) return why;
  if (a.image.number == Number::u8) return start<std::uint8_t, float>(a, stream);
  return with_type(a.image.number, [&]<class T>(T) { return start<T, T>(a, stream); });
}

}  // namespace modelflow::cuda
