// Which form of Winograd's method a convolution takes, what it costs, and the weights transformed for it.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "backends/cpu/conv/winograd.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// The last two axes of a window (1 before the only one).
struct WinogradMethod {
  WinogradForm form;
  WinogradTile tile;
  std::array<std::int64_t, 2> kernel, strides;
  const double *down, *along;  ///< what transforms taps, [frequency, tap], down columns and along rows
  double transform;            ///< of a number, in those of F(2, 3) and F(4, 3)
  std::string_view name;       ///< in the cache of weights
};

/// What one way to compute a convolution costs, in multiplications at the speed of a good matrix product.
struct WinogradWork {
  double products, weight_bytes, transforms;
  double total() const { return products + 5 * weight_bytes + transforms; }
};

/// Whether there is one for window, strides and dilations of a call that accepts_conv() takes.
bool has_winograd_method(const Call& call);
/// The one that takes the least work on vectors of `lanes`, or null when the direct convolution takes no
/// more.
const WinogradMethod* winograd_method(const Call& call, std::size_t lanes);
/// Null: of the direct convolution.
WinogradWork winograd_work(const Call& call, const WinogradMethod* method, std::size_t lanes);
/// WinogradRun::weights of one group after the other.
std::shared_ptr<const std::byte> winograd_weights(const Call& call, const WinogradMethod& method,
                                                  const WinogradCode& code);

}  // namespace modelflow::cpu
