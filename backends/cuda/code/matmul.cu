// Matrix products: 16-bit numbers on tensor cores, float32 (and whatever an old device has) in registers, each with its
// epilogue.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/epilogue.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/device/rows.h"

namespace modelflow::cuda {
namespace {

/// Where the matrices of a product begin.
template <class T>
struct Matrices {
  const T *a, *b;
  std::int64_t y;  ///< place of the first result

  __device__ Matrices(const MatMulLaunch& g, std::int64_t product)
      : a(static_cast<const T*>(g.a) + place(g.batches, 0, product) * g.m * g.k),
        b(static_cast<const T*>(g.b) + place(g.batches, 1, product) * g.k * g.n),
        y(product * g.m * g.n) {}
};

/// Tiles of so many rows and columns, of each product.
__host__ __device__ LargeGrid grid_of(const MatMulLaunch& g, std::int64_t rows, std::int64_t columns) {
  return {ceil_div(g.m, rows), ceil_div(g.n, columns), g.products};
}

template <class T, class Shape, bool trans_a, bool trans_b>
__global__ void __launch_bounds__(Shape::kThreads) tensor_product(const MatMulLaunch g) {
  MF_DYNAMIC_SHARED(T, shared);
  constexpr int kThreads = Shape::kThreads;
  const LargeGrid here = grid_of(g, Shape::kRows, Shape::kColumns).here();
  if (here.z >= g.products) return;
  const Matrices<T> at(g, here.z);
  const std::int64_t row0 = here.x * Shape::kRows, column0 = here.y * Shape::kColumns;
  const auto fetch_a = [&](T* tile, std::int64_t k0) {
    fetch_lines<T, Shape::kRows, trans_a, kThreads>(tile, at.a, trans_a ? g.m : g.k, row0, k0, g.m, g.k, g.wide_a);
  };
  const auto fetch_b = [&](T* tile, std::int64_t k0) {
    fetch_lines<T, Shape::kColumns, !trans_b, kThreads>(tile, at.b, trans_b ? g.k : g.n, column0, k0, g.n, g.k,
                                                        g.wide_b);
  };
  gemm_block<T, Shape, trans_a, !trans_b>(g.k, shared, fetch_a, fetch_b, [&](int r, int c, float* sums) {
    store_row(g.epilogue, sums, static_cast<T*>(g.y), row0 + r, column0 + c, g.m, g.n, at.y, g.wide_y);
  });
}

/// In plain arithmetic: float32 has no tensor cores that keep its digits.
template <class T>
__global__ void __launch_bounds__(kPlainThreads) plain_product(const MatMulLaunch g) {
  const LargeGrid here = grid_of(g, kPlainSide, kPlainSide).here();
  if (here.z >= g.products) return;
  const Matrices<T> at(g, here.z);
  const std::int64_t row0 = here.x * kPlainSide, column0 = here.y * kPlainSide;
  const auto fetch = [&](PlainSlice& a, PlainSlice& b, std::int64_t k0) {
    for (int i = static_cast<int>(threadIdx.x); i < kPlainSide * kPlainDepth; i += kPlainThreads) {
      // Neighbouring threads read neighbouring numbers, whichever way the matrix lies.
      const int ka = g.trans_a ? i / kPlainSide : i % kPlainDepth, r = g.trans_a ? i % kPlainSide : i / kPlainDepth;
      const int kb = g.trans_b ? i % kPlainDepth : i / kPlainSide, c = g.trans_b ? i / kPlainDepth : i % kPlainSide;
      const std::int64_t row = row0 + r, column = column0 + c;
      const bool in_a = row < g.m && k0 + ka < g.k, in_b = column < g.n && k0 + kb < g.k;
      a[ka][r] = in_a ? static_cast<float>(at.a[g.trans_a ? (k0 + ka) * g.m + row : row * g.k + k0 + ka]) : 0;
      b[kb][c] = in_b ? static_cast<float>(at.b[g.trans_b ? column * g.k + k0 + kb : (k0 + kb) * g.n + column]) : 0;
    }
  };
  plain_block(g.k, fetch, [&](int r, int c, float sum) {
    const std::int64_t row = row0 + r, column = column0 + c, y = at.y + row * g.n + column;
    if (row >= g.m || column >= g.n) return;
    static_cast<T*>(g.y)[y] = static_cast<T>(finished<T>(g.epilogue, sum, column, y, row));
  });
}

template <class T, class Shape, bool trans_a, bool trans_b>
const char* start_tensor(const MatMulLaunch& g, void* stream) {
  constexpr unsigned kShared = gemm_shared<T, Shape, trans_a, !trans_b>();
  return launch(tensor_product<T, Shape, trans_a, trans_b>,
                grid_of(g, Shape::kRows, Shape::kColumns).launch(Shape::kThreads, kShared, stream), g);
}

template <class T, class Shape>
const char* start_shape(const MatMulLaunch& g, void* stream) {
  if (g.trans_a)
    return g.trans_b ? start_tensor<T, Shape, true, true>(g, stream) : start_tensor<T, Shape, true, false>(g, stream);
  return g.trans_b ? start_tensor<T, Shape, false, true>(g, stream) : start_tensor<T, Shape, false, false>(g, stream);
}

template <class T>
const char* start(MatMulLaunch g, void* stream) {
  if (!g.tensor_cores)
    return launch(plain_product<T>, grid_of(g, kPlainSide, kPlainSide).launch(kPlainThreads, 0, stream), g);
  if constexpr (sizeof(T) == 2) {
    g.wide_a = (g.trans_a ? g.m : g.k) % 8 == 0 && aligned(g.a, 16);
    g.wide_y = g.n % 8 == 0 && aligned(g.y, 16);
    g.wide_b = (g.trans_b ? g.k : g.n) % 8 == 0 && aligned(g.b, 16);
    return g.large ? start_shape<T, LargeGemm>(g, stream) : start_shape<T, SmallGemm>(g, stream);
  }
  return "tensor cores take 16-bit numbers";
}

}  // namespace

const char* start_matmul(const MatMulLaunch& g, void* stream) {
  return with_type(g.number, [&]<class T>(T) { return start<T>(g, stream); });
}

}  // namespace modelflow::cuda
