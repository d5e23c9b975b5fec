// Products of 8-bit numbers on tensor cores, and rows of floats brought into 8 bits in front of them.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/epilogue.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

using Byte = std::uint8_t;

constexpr float kLargest = 127, kTiny = 1e-30F;  // as the body has them

template <class T>
__global__ void row_steps(const RowStepsLaunch a) {
  __shared__ float partial[32];
  for (std::int64_t row = first_row(); row < a.rows; row += rows_of_grid()) {
    const T* const x = static_cast<const T*>(a.x) + row * a.n;
    const auto number = [x](std::int64_t i) { return static_cast<float>(x[i]); };
    Byte* const y = a.y + row * a.stride;
    Steps steps = a.known;
    float inverse = 0;
    if (a.scales) {
      float largest = 0, total = 0;
      for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) largest = Max()(largest, fabsf(number(i)));
      const float range = Max()(block_reduce(largest, Max(), partial), kTiny);
      inverse = kLargest / range;
      for (std::int64_t i = threadIdx.x; i < a.n; i += blockDim.x) total += number(i) * inverse;
      total = block_reduce(total, Sum(), partial);
      // A row with NaN or an infinity is NaN.
      if (threadIdx.x == 0) a.scales[row] = range / kLargest + total * 0.0F;
    }
    for (std::int64_t i = threadIdx.x; i < a.stride; i += blockDim.x) {
      constexpr float kMiddle = 128;
      const float step = i >= a.n ? 0 : a.scales ? rintf(number(i) * inverse) + kMiddle : step_of(steps, number(i));
      y[i] = stored<Byte>(step);
    }
  }
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads) tensor_qmatmul(const __grid_constant__ QMatMulLaunch g) {
  MF_DYNAMIC_SHARED(Byte, shared);
  const LargeGrid here = LargeGrid{ceil_div(g.m, Shape::kRows), ceil_div(g.n, Shape::kColumns), 1}.here();
  if (here.z > 0) return;
  const std::int64_t row0 = here.x * Shape::kRows, column0 = here.y * Shape::kColumns;
  const auto fetch_a = [&](Byte* tile, std::int64_t k0) {
    fetch_tile<Byte, Tile<Byte, Shape::kRows, false>, Shape::kThreads>(tile, g.a, g.stride, row0, k0, g.m, g.stride,
                                                                       true);
  };
  const auto fetch_b = [&](Byte* tile, std::int64_t k0) {
    fetch_tile<Byte, Tile<Byte, Shape::kColumns, false>, Shape::kThreads>(tile, g.b, g.stride, column0, k0, g.n,
                                                                          g.stride, true);
  };
  gemm_block<Byte, Shape, false, false>(g.stride, shared, fetch_a, fetch_b, [&](int r, int c, std::int32_t* sums) {
    const std::int64_t row = row0 + r, column = column0 + c;
    if (row >= g.m || column >= g.n) return;
    const int count = g.n - column < 8 ? static_cast<int>(g.n - column) : 8;
    const float by_row = g.a_scales ? g.a_scales[row] : 1;
    auto* const products = reinterpret_cast<float*>(sums);  // in their place: an array of its own would lie in memory
    for (int i = 0; i < count; ++i) {
      const float product = static_cast<float>(shifted(sums[i], g.shift[column + i])) * by_row * g.b_scales[column + i];
      memcpy(products + i, &product, sizeof product);
    }
    store_row(g.epilogue, products, static_cast<T*>(g.y), row, column, g.m, g.n, 0, g.wide_y);
  });
}

template <class T, class Shape>
const char* start(const QMatMulLaunch& g, void* stream) {
  const LargeGrid grid{ceil_div(g.m, Shape::kRows), ceil_div(g.n, Shape::kColumns), 1};
  return launch(tensor_qmatmul<T, Shape>,
                grid.launch(Shape::kThreads, gemm_shared<Byte, Shape, false, false>(), stream), g);
}

}  // namespace

const char* start_row_steps(const RowStepsLaunch& a, void* stream) {
  return with_type(
      a.number, [&](auto type) { return launch(row_steps<decltype(type)>, over_rows(a.rows, a.stride, stream), a); });
}

const char* start_qmatmul(const QMatMulLaunch& launched, void* stream) {
  QMatMulLaunch g = launched;
  return with_type(g.number, [&](auto type) {
    using T = decltype(type);
    g.wide_y = g.n % 8 == 0 && aligned(g.y, 8 * sizeof(T));
    return g.large ? start<T, LargeGemm>(g, stream) : start<T, SmallGemm>(g, stream);
  });
}

}  // namespace modelflow::cuda
