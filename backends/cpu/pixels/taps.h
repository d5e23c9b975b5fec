// Which numbers of an axis the numbers of a resized one are made of.
#pragma once

#include <string_view>

#include "backends/cpu/loops/resize.h"
#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// How ONNX's Resize finds the place of a number of the result.
enum class Coordinates { half_pixel, pytorch_half_pixel, align_corners, asymmetric };
std::optional<Coordinates> coordinates_of(std::string_view name);

struct Interpolation {
  bool cubic = false;
  Coordinates where = Coordinates::half_pixel;
  float cubic_coeff_a = -0.75F;
  bool exclude_outside = false;

  std::size_t taps() const { return cubic ? 4 : 2; }
};

/// One axis: `from` numbers (1 at least) become `to`.
struct ResizedAxis {
  std::size_t from, to;
  float scale;
};

/// How many bytes its lists take.
std::size_t bytes_of_taps(const Interpolation& how, const ResizedAxis& axis);
/// Fills `memory`, which is aligned for vectors and as large as that.
Taps make_taps(const Interpolation& how, const ResizedAxis& axis, std::byte* memory);

}  // namespace modelflow::cpu
