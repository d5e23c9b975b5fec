// Reads what a call of Upsample says about the result, and checks that there is room for it.
#include "backends/ops/resized.h"

#include <limits>
#include <optional>
#include <string>

#include "backends/call_attrs.h"

namespace modelflow::ops {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::invalid_input, "Upsample: " + what); }

std::optional<Coordinates> coordinates_of(std::string_view name) {
  if (name == "half_pixel") return Coordinates::half_pixel;
  if (name == "pytorch_half_pixel") return Coordinates::pytorch_half_pixel;
  if (name == "align_corners") return Coordinates::align_corners;
  if (name == "asymmetric") return Coordinates::asymmetric;
  return {};
}

std::size_t numbers_of(std::span<const std::int64_t> dims) {
  std::size_t numbers = 1;
  for (const std::int64_t extent : dims)
    if (__builtin_mul_overflow(numbers, static_cast<std::size_t>(extent), &numbers))
      fail("no tensor has room for the result");
  if (numbers > std::numeric_limits<std::size_t>::max() / 8) fail("no tensor has room for the result");
  return numbers;
}

}  // namespace

Resizing::Resizing(const Call& call)
    : scales_(CallAttrs(call).floats("scales")), last_(CallAttrs(call).text("layout") == "NHWC") {
  const CallAttrs attrs(call);
  how_ = {attrs.text("mode") == "cubic", *coordinates_of(attrs.text("coordinate_transformation_mode")),
          attrs.number("cubic_coeff_a"), attrs.flag("exclude_outside")};
}

Resized Resizing::of(std::span<const std::int64_t> x, std::span<const std::int64_t> sizes) const {
  const std::size_t rank = x.size();
  if (rank < 3 || rank > 4) fail("x is not of rank 3 or 4");
  const std::size_t channels = last_ ? rank - 1 : 1, first = last_ ? 1 : 2;
  if (!sizes.empty()) {
    if (sizes.size() != rank) fail("there is not one size for each axis");
    if (sizes[0] != x[0] || sizes[1] != x[channels]) fail("the sizes change the batch or the channels");
  } else if (scales_.size() != rank - 2) {
    fail("scales do not fit the rank");
  }
  Resized made;
  made.flat = rank == 3;
  made.dims.assign(x.begin(), x.end());
  made.wide = axis(x[first + rank - 3], rank - 3, sizes);
  if (!made.flat) made.high = axis(x[first], 0, sizes);
  if (!made.flat) made.dims[first] = made.high.to;
  made.dims[first + rank - 3] = made.wide.to;
  made.numbers = numbers_of(made.dims);
  made.channels = last_ ? x[channels] : 1;
  made.images = last_ ? x[0] : x[0] * x[channels];
  if (made.numbers > 0 && (made.high.from == 0 || made.wide.from == 0)) fail("there is nothing to enlarge");
  return made;
}

/// One axis, `index` of those that an image has.
ResizedAxis Resizing::axis(std::int64_t from, std::size_t index, std::span<const std::int64_t> sizes) const {
  std::int64_t to = 0;
  float scale = 1;
  if (!sizes.empty()) {
    to = sizes[index + 2];
    scale = from > 0 ? static_cast<float>(to) / static_cast<float>(from) : 1;
    if (to < 0 || (to == 0) != (from == 0)) fail("a size is not positive");
  } else {
    scale = scales_[index];
    const float scaled = scale * static_cast<float>(from);
    if (!(scale > 0) || !(scaled < 0x1p31F)) fail("a scale that no tensor has room for");
    to = static_cast<std::int64_t>(scaled);
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (from > kMost || to > kMost) fail("an image is too large");
  return {from, to, scale};
}

Verdict accepts_resizing(const Call& call) {
  const CallAttrs attrs(call);
  const Operand& x = call.in(0);
  if (attrs.text("mode") != "linear" && attrs.text("mode") != "cubic") return no("mode is neither linear nor cubic");
  if (!x.shape.has_rank() || x.shape.rank() < 3 || x.shape.rank() > 4) return no("is not of one or two axes", x.name);
  const std::string where = attrs.text("coordinate_transformation_mode");
  if (!coordinates_of(where)) return no("coordinates are " + where);
  if (call.has(1) && call.in(1).dtype != DType::i64) return no("is not int64", call.in(1).name);
  return yes();
}

}  // namespace modelflow::ops
