// Convolutions of 8-bit numbers: as products over gathered pixels on tensor cores, and each result by itself where
// groups leave little to share.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/activation.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/windows.h"

namespace modelflow::cuda {
namespace {

using Byte = std::uint8_t;

/// The step of a sum, not yet rounded into 8 bits. `column`: its filter, `at`: its place in y.
__device__ inline float finished(const StepsEpilogue& e, std::int32_t sum, std::int64_t column, std::int64_t at) {
  using Use = EpilogueLaunch::Residual;
  float x = static_cast<float>(shifted(sum, e.shift[column])) * e.scale[column];
  const float residual = e.residual ? number_of(e.residual_steps, static_cast<float>(e.residual[at])) : 0;
  if (e.use == Use::before) x += residual;
  x = activated(e.activation, x);
  if (e.use == Use::after) x += residual;
  return step_of(e.y, x);
}

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) tensor_qconv(const __grid_constant__ QConvLaunch q) {
  MF_DYNAMIC_SHARED(Byte, shared);
  const ConvLaunch& c = q.conv;
  const std::int64_t pixels = pixels_of(c);
  const LargeGrid here = LargeGrid{ceil_div(pixels, Shape::kRows), ceil_div(c.filters, Shape::kColumns), 1}.here();
  if (here.z > 0) return;
  const std::int64_t pixel0 = here.x * Shape::kRows, filter0 = here.y * Shape::kColumns;
  const Pixels<Byte, Shape> rows(c, pixel0);
  const auto fetch_x = [&](Byte* tile, std::int64_t k0) { rows.fetch(c, tile, static_cast<int>(k0)); };
  const auto fetch_w = [&](Byte* tile, std::int64_t k0) {
    fetch_tile<Byte, Tile<Byte, Shape::kColumns, false>, Shape::kThreads>(
        tile, static_cast<const Byte*>(c.w), q.w_stride, filter0, k0, c.filters, q.w_stride, true);
  };
  Byte* const y = static_cast<Byte*>(c.y);
  gemm_block<Byte, Shape, false, false>(q.w_stride, shared, fetch_x, fetch_w, [&](int r, int f, std::int32_t* sums) {
    const std::int64_t pixel = pixel0 + r, filter = filter0 + f;
    if (pixel >= pixels || filter >= c.filters) return;
    const std::int64_t at = Window(c, pixel).y + filter * c.y_channel;
    const int count = c.filters - filter < 8 ? static_cast<int>(c.filters - filter) : 8;
#pragma unroll 1
    for (int i = 0; i < count; ++i)
      sums[i] = stored<Byte>(finished(q.epilogue, sums[i], filter + i, at + i * c.y_channel));
    if (c.wide_y) {
      Pack<Byte, 8> pack;
      for (int i = 0; i < 8; ++i) pack.of[i] = static_cast<Byte>(sums[i]);
      *reinterpret_cast<Pack<Byte, 8>*>(y + at) = pack;
      return;
    }
    for (int i = 0; i < count; ++i) y[at + i * c.y_channel] = static_cast<Byte>(sums[i]);
  });
}

/// N results for each thread, side by side in y where they are more than one.
template <int N>
__global__ void __launch_bounds__(256) direct_qconv(const __grid_constant__ QConvLaunch q) {
  const ConvLaunch& c = q.conv;
  const auto* const w = static_cast<const std::int8_t*>(c.w);
  const int per_group = c.channels / c.group, filters_per_group = c.filters / c.group;
  const std::int64_t area = area_of(c), all = c.batch * area * c.filters / N;
  const bool last = c.y_channel == 1;
  for (std::int64_t unit = thread_of_grid(); unit < all; unit += threads_of_grid()) {
    const std::int64_t i = unit * N;
    const auto filter = static_cast<int>(last ? i % c.filters : i / area % c.filters);
    const Window window(c, last ? i / c.filters : i / (area * c.filters) * area + i % area);
    const int first = N > 1 ? filter : filter / filters_per_group * per_group;
    std::int32_t sums[N] = {};
    for (int tap = 0; tap < places_of(c); ++tap) {
      const std::int64_t at = window.at(c, tap_of(c, tap));
      const std::int8_t* const weights = w + static_cast<std::int64_t>(tap) * per_group * c.filters + filter;
      for (int channel = 0; channel < per_group; ++channel) {
        Pack<Byte, N> x;
        for (int k = 0; k < N; ++k) x.of[k] = c.outside;
        if (at >= 0)
          x = *reinterpret_cast<const Pack<Byte, N>*>(static_cast<const Byte*>(c.x) + at +
                                                      (first + channel) * c.x_channel);
        const auto v = *reinterpret_cast<const Pack<std::int8_t, N>*>(weights + std::int64_t{channel} * c.filters);
        for (int k = 0; k < N; ++k) sums[k] += static_cast<std::int32_t>(x.of[k]) * v.of[k];
      }
    }
    float steps[N];
    for (int k = 0; k < N; ++k) steps[k] = finished(q.epilogue, sums[k], filter + k, i + k);
    write<Byte, N>(steps, static_cast<Byte*>(c.y) + i);
  }
}

template <class Shape>
const char* start_tensor(const QConvLaunch& q, void* stream) {
  const ConvLaunch& c = q.conv;
  const LargeGrid grid{ceil_div(pixels_of(c), Shape::kRows), ceil_div(c.filters, Shape::kColumns), 1};
  return launch(tensor_qconv<Shape>, grid.launch(Shape::kThreads, gemm_shared<Byte, Shape, false, false>(), stream), q);
}

}  // namespace

const char* start_qconv(const QConvLaunch& launched, void* stream) {
  QConvLaunch q = launched;
  ConvLaunch& c = q.conv;
  if (c.direct) {
    const std::int64_t all = pixels_of(c) * c.filters;
    if (q.four && aligned(c.x, 4) && aligned(c.y, 4)) return launch(direct_qconv<4>, over_units(all / 4, stream), q);
    return launch(direct_qconv<1>, over_units(all, stream), q);
  }
  c.step_x = c.channels % 16 == 0 && aligned(c.x, 16) ? 16 : c.channels % 8 == 0 && aligned(c.x, 8) ? 8 : 1;
  c.wide_y = c.y_channel == 1 && c.filters % 8 == 0 && aligned(c.y, 8);
  return c.large ? start_tensor<LargeGemm>(q, stream) : start_tensor<SmallGemm>(q, stream);
}

}  // namespace modelflow::cuda
