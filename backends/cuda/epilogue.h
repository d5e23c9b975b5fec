// What products and convolutions on a GPU have alike: what follows the sums, and how large their tiles are.
#pragma once

#include <algorithm>

#include "backends/cuda/launches/products.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// Bias, slopes, residual and activation behind a result of these dims with `columns` numbers of bias; throws
/// Error(invalid_input) naming the op where the operands do not fit.
template <class OpAttrs>
EpilogueLaunch epilogue_of(const char* op, const Invocation& call, const OpAttrs& attrs,
                           const ActivationSpec& activation, std::int64_t columns, const Dims& y) {
  const auto fail = [op](const char* why) { throw Error(ErrorKind::invalid_input, std::string(op) + ": " + why); };
  EpilogueLaunch epilogue = {};
  epilogue.use = static_cast<EpilogueLaunch::Residual>(attrs.residual);
  epilogue.scale = 1;
  epilogue.activation = activation;
  if constexpr (requires { attrs.row_bias; }) epilogue.row_bias = attrs.row_bias;
  if (attrs.has_bias) {
    const View bias = call.input(attrs.bias_index());
    const Dims wanted = epilogue.row_bias ? Dims{y[y.size() - 2], 1} : Dims{columns};
    if (!std::ranges::equal(bias.dims, wanted)) fail("bias does not fit the result");
    epilogue.bias = bias.data;
  }
  if constexpr (requires { attrs.has_slopes; }) {
    if (attrs.has_slopes) {
      const View slopes = call.input(attrs.slopes_index());
      if (slopes.dims.size() != 1 || slopes.dims[0] != columns) fail("slopes do not fit the result");
      epilogue.slopes = slopes.data;
      epilogue.activation.kind = Activation::none;
    }
  }
  if (epilogue.use != EpilogueLaunch::Residual::none) {
    const View residual = call.input(attrs.residual_index());
    if (!std::ranges::equal(residual.dims, y)) fail("residual is not of the shape of the result");
    epilogue.residual = residual.data;
  }
  return epilogue;
}

/// Whether there are enough tiles of 128 x 128 for all multiprocessors.
inline bool large_tiles(std::int64_t rows, std::int64_t columns, std::int64_t products, const Target& target) {
  constexpr std::int64_t kSide = 128;
  return (rows + kSide - 1) / kSide * ((columns + kSide - 1) / kSide) * products >= target.cores;
}

}  // namespace modelflow::cuda
