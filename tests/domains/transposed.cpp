// Transposed convolutions: in 8 bits those whose windows do not overlap.
#include <algorithm>
#include <cmath>

#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

/// Extents of the window, one for each axis of the image.
Ints window(const Chosen& c) {
  const Ints all = c.list("window");
  return {all.begin(), all.begin() + std::ssize(c.list("image"))};
}

Dims weights_of(const Chosen& c, const Ints& window) {
  Dims w = {c.number("channels"), c.number("filters")};
  w.insert(w.end(), window.begin(), window.end());
  return w;
}

Dims image_of(const Chosen& c, bool last) {
  Dims x = c.list("image");
  x.insert(x.begin(), c.number("batch"));
  x.insert(last ? x.end() : x.begin() + 1, c.number("channels"));
  return x;
}

/// What an attribute is along the axes of the image: numbers of a word that has enough for three. Of pads those in
/// front of all axes stand first.
Ints along(const Chosen& c, std::string_view name) {
  const Ints all = c.list(name);
  const std::ptrdiff_t axes = std::ssize(c.list("image")), half = std::ssize(all) / 2;
  if (name != "padding") return {all.begin(), all.begin() + axes};
  Ints pads(all.begin(), all.begin() + axes);
  pads.insert(pads.end(), all.begin() + half, all.begin() + half + axes);
  return pads;
}

bool floats(const Chosen& c, Operands& made) {
  const Ints kernel = window(c);
  Ints strides = kernel;
  if (c.word("steps") != "window") {
    strides = along(c, "steps");
    const Ints pads = along(c, "padding");
    Ints more = along(c, "more");
    const Ints image = c.list("image");
    for (std::size_t i = 0; i < image.size(); ++i) {
      more[i] = std::min(more[i], strides[i] - 1);
      const std::int64_t left = pads[i] + pads[i + image.size()];
      if ((image[i] - 1) * strides[i] + kernel[i] + more[i] <= left) return false;
    }
    made.call.attrs.set("pads", pads).set("output_padding", more);
  }
  made.call.attrs.set("strides", strides);
  made.feed("x", made.normal(image_of(c, true)));
  made.constant("w", made.weights(weights_of(c, kernel), c.number("channels")), c.is("constant"));
  if (c.is("has_bias")) made.constant("bias", made.uniform({c.number("filters")}, -1, 1), c.is("constant"));
  return true;
}

bool bytes(const Chosen& c, Operands& made) {
  const Ints strides = window(c);
  const std::int64_t filters = c.number("filters"), channels = c.number("channels");
  made.call.attrs.set("strides", strides);
  made.feed("x", made.bytes(image_of(c, c.word("layout") == "NHWC")));
  made.constant("w", made.steps(weights_of(c, strides)), c.is("constant"));
  const float about = 1.0f / 127 / std::sqrt(static_cast<float>(channels));
  made.constant("w_scale", made.uniform({filters}, about / 2, about), c.is("constant"));
  made.constant("bias", made.integers({filters}, 2000), c.is("constant"));
  return true;
}

std::vector<Axis> axes(std::vector<Axis> own) {
  for (Axis& axis : activations()) own.push_back(std::move(axis));
  for (Axis axis : {numbers("channels", {1, 3, 4, 16, 17, 33, 64}), numbers("filters", {1, 2, 7, 16, 19, 33, 65}),
                    numbers("batch", {0, 1, 2}), numbers("constant", {1, 1, 1, 0})})
    own.push_back(std::move(axis));
  return own;
}

}  // namespace

std::vector<Domain> transposed_domains() {
  const auto quantized = [](bool to_bytes) {
    std::vector<Axis> own = {words("layout", {"NHWC", "NCHW"}), reals("x_scale", {0.0203f, 0.004f}),
                             numbers("x_zero_point", {0, 101, 255})};
    if (to_bytes) own.push_back(reals("y_scale", {0.0307f, 0.0079f}));
    if (to_bytes) own.push_back(numbers("y_zero_point", {0, 77, 255}));
    own.push_back(words("image", {"1,1", "3,4", "1,9", "7,5", "5", "13", "11,12"}));
    own.push_back(words("window", {"2,2,2", "1,1,1", "2,3,4", "4,1,3", "4,4,1"}));
    return axes(std::move(own));
  };
  std::vector<Axis> own = {
      flag("has_bias"),
      words("image", {"1,1", "3,4", "1,9", "7,5", "5", "13", "11,12", "3,4,5", "2,1,7", "1,5,2", "40", "310", "2,300"}),
      words("window", {"2,2,2", "1,1,1", "2,3,4", "4,1,3", "4,4,1", "4,4,4", "3,3,3", "7,5,2", "10,16,3"}),
      words("steps", {"window", "window", "window", "window", "window", "1,1,1", "2,2,2", "2,2,2", "3,1,2", "5,8,4"}),
      words("padding", {"0,0,0,0,0,0", "1,1,1,1,1,1", "1,0,2,0,3,1", "3,4,0,3,4,2"}),
      words("more", {"0,0,0", "1,1,1", "1,0,2", "4,7,3"})};
  return {
      {"ConvTranspose", axes(std::move(own)), floats, {Special::nan, Special::infinite, Special::huge, Special::tiny}},
      {"QConvTranspose", quantized(true), bytes},
      {"QConvTransposeFloat", quantized(false), bytes}};
}

}  // namespace modelflow::domains
