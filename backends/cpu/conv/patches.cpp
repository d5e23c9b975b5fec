// Windows that lie side by side become the pixels of a product.
#include "backends/cpu/conv/patches.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/conv/dense.h"
#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {
namespace {

// Shorter rows of a window cost more to copy than the product gains.
constexpr std::int64_t kLeastColumns = 8;

/// One row of windows.
void copy_row(const ConvProblem& p, std::int64_t image, std::int64_t row, float* to) {
  const std::int64_t pixel = p.kernel_h * p.channels * p.kernel_w;
  for (std::int64_t i = 0; i < p.kernel_h; ++i) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const float* from = p.x + ((image * p.channels + c) * p.height + row * p.stride_h + i) * p.width;
      float* at = to + (i * p.channels + c) * p.kernel_w;
      for (std::int64_t j = 0; j < p.columns; ++j)
        std::memcpy(at + j * pixel, from + j * p.stride_w, static_cast<std::size_t>(p.kernel_w) * sizeof(float));
    }
  }
}

}  // namespace

bool has_patches(const ConvProblem& p) {
  return reads_planes(p.x_last, p.channels) && p.kernel_h == p.stride_h && p.kernel_w == p.stride_w &&
         p.dilation_h == 1 && p.dilation_w == 1 && p.top == 0 && p.left == 0 && p.rows * p.stride_h <= p.height &&
         p.columns * p.stride_w <= p.width && p.kernel_w >= kLeastColumns;
}

std::size_t patch_floats(const ConvProblem& p) {
  return static_cast<std::size_t>(p.batch * p.rows * p.columns * p.kernel_h * p.channels * p.kernel_w);
}

ConvProblem product_of_patches(const ConvProblem& p, Invocation& call, float* to) {
  ConvProblem product = p;
  product.x = to;
  product.x_last = true;
  product.channels = p.kernel_h * p.channels * p.kernel_w;
  product.height = p.rows, product.width = p.columns;
  product.kernel_h = product.kernel_w = product.stride_h = product.stride_w = 1;
  const auto rows = static_cast<std::size_t>(p.batch * p.rows);
  share(call, rows, std::min(rows, tasks_for(patch_floats(p), call)), [&](auto begin, auto end, std::size_t) {
    for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i)
      copy_row(p, i / p.rows, i % p.rows, to + i * p.columns * product.channels);
  });
  return product;
}

}  // namespace modelflow::cpu
