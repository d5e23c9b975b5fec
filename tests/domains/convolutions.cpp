// Convolutions: float32, bfloat16 and 8 bits.
#include <algorithm>
#include <cmath>

#include "src/core/bf16.h"
#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

/// The extents of one call.
struct Extents {
  std::int64_t channels, filters, group;
  Dims x, w, y;
};

/// A window: kernel, strides, dilations and pads, each "3,3"; pads may be one number for all.
Ints part(const std::string& text, std::size_t index) {
  std::size_t begin = 0;
  for (; index > 0; --index) begin = text.find('/', begin) + 1;
  return Chosen::numbers_in(text.substr(begin, text.find('/', begin) - begin));
}

std::optional<Extents> extents(const Chosen& c, Attrs& attrs) {
  const std::string window = c.word("window"), groups = c.word("groups");
  const Ints kernel = part(window, 0), strides = part(window, 1), dilations = part(window, 2), pads = part(window, 3);
  Extents e{c.number("channels"), c.number("filters"), 1, {}, {}, {}};
  if (groups == "each") e.group = e.channels, e.filters = e.channels;
  if (groups == "each twice") e.group = e.channels, e.filters = 2 * e.channels;
  if (groups == "each five times") e.group = e.channels, e.filters = 5 * e.channels;
  for (const auto& [word, size] : {std::pair("in twos", 2), std::pair("in fours", 4), std::pair("in eights", 8),
                                   std::pair("in sixteens", 16), std::pair("in 32s", 32)})
    if (groups == word) e.group = e.channels, e.filters = e.channels *= size;
  if (groups == "two") e.group = 2, e.channels *= 2, e.filters *= 2;
  e.w = {e.filters, e.channels / e.group};
  e.w.insert(e.w.end(), kernel.begin(), kernel.end());
  const Dims image = c.list("image");
  const std::string layouts = c.word("layouts");
  const bool x_last = layouts[0] == 'l', y_last = layouts[1] == 'l';
  e.x = {c.number("batch")}, e.y = e.x;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t in = image[image.size() == kernel.size() ? i : i % image.size()];
    const std::int64_t room = in + pads[i] + pads[i + kernel.size()] - (kernel[i] - 1) * dilations[i] - 1;
    if (room < 0) return {};
    e.x.push_back(in);
    e.y.push_back(room / strides[i] + 1);
  }
  e.x.insert(x_last ? e.x.end() : e.x.begin() + 1, e.channels);
  e.y.insert(y_last ? e.y.end() : e.y.begin() + 1, e.filters);
  attrs.set("kernel_shape", kernel).set("strides", strides).set("dilations", dilations).set("pads", pads);
  attrs.set("group", e.group).set("x_layout", x_last ? "NHWC" : "NCHW").set("y_layout", y_last ? "NHWC" : "NCHW");
  return e;
}

std::int64_t depth(const Extents& e) { return element_count(e.w) / e.w[0]; }

bool conv(const Chosen& c, Operands& made) {
  const std::optional<Extents> e = extents(c, made.call.attrs);
  if (!e) return false;
  made.feed("x", made.normal(e->x));
  made.constant("w", made.weights(e->w, depth(*e)));
  if (c.is("has_bias")) made.constant("bias", made.uniform({e->filters}, -1, 1), c.is("constant"));
  if (c.word("activation") == "PRelu") made.constant("slope", made.uniform({e->filters}, -0.5, 1.5), c.is("constant"));
  if (c.word("pre_activation") != "None") {
    made.constant("pre_scale", made.uniform({e->channels}, 0.5, 1.5), c.is("constant"));
    made.constant("pre_shift", made.uniform({e->channels}, -1, 1), c.is("constant"));
  }
  if (c.word("residual") != "none") made.feed("residual", made.normal(e->y));
  return true;
}

bool conv_bf16(const Chosen& c, Operands& made) {
  const std::optional<Extents> e = extents(c, made.call.attrs);
  if (!e) return false;
  const auto either = [&](const char* name, Tensor value) {
    made.feed(name, c.is(std::string(name) + "_narrow") ? to_bf16(value) : value);
  };
  either("x", made.normal(e->x));
  made.constant("w", to_bf16(made.weights(e->w, depth(*e))));
  if (c.is("has_bias")) made.constant("bias", made.uniform({e->filters}, -1, 1), c.is("constant"));
  if (c.word("residual") != "none") either("residual", made.normal(e->y));
  return true;
}

bool qconv(const Chosen& c, Operands& made) {
  const std::optional<Extents> e = extents(c, made.call.attrs);
  if (!e) return false;
  made.feed("x", made.bytes(e->x));
  const bool constant = c.is("constant");
  made.constant("w", made.steps(e->w, static_cast<int>(c.number("largest"))), constant);
  const float about = 1.5f / std::sqrt(static_cast<float>(depth(*e))) / 127, x_scale = c.real("x_scale");
  const Tensor scales = made.uniform({e->filters}, 0.6f * about, 1.4f * about);
  made.constant("w_scale", scales, constant);
  made.constant("bias", made.integers({e->filters}, static_cast<int>(0.5f / (x_scale * about))), constant);
  if (c.word("residual") != "none") made.feed("residual", made.bytes(e->y));
  return true;
}

// kernel, strides, dilations, pads. Those that vectors, minimal filtering and tiles are made for stand more than once.
const Axis kWindow = words("window", {"1,1/1,1/1,1/0,0,0,0",
                                      "1,1/1,1/1,1/0,0,0,0",
                                      "3,3/1,1/1,1/1,1,1,1",
                                      "3,3/1,1/1,1/1,1,1,1",
                                      "3,3/1,1/1,1/0,0,0,0",
                                      "3,3/2,2/1,1/1,1,1,1",
                                      "3,3/2,2/1,1/0,0,1,1",
                                      "1,1/2,2/1,1/0,0,0,0",
                                      "5,5/1,1/1,1/2,2,2,2",
                                      "5,5/2,2/1,1/1,2,2,1",
                                      "3,3/1,1/2,3/2,3,2,3",
                                      "5,5/1,1/2,2/4,4,4,4",
                                      "3,3/2,2/2,2/2,2,2,2",
                                      "1,9/1,1/1,1/0,4,0,4",
                                      "7/1/3/9,9",
                                      "2,3/1,2/1,1/1,0,0,2",
                                      "1,3/1,1/1,1/0,1,0,1",
                                      "7,7/2,2/1,1/3,3,3,3",
                                      "7,7/1,1/1,1/3,3,3,3",
                                      "4/3/1/1,2",
                                      "2,8/2,8/1,1/0,0,0,0",
                                      "3/1/1/1,1",
                                      "3/1/2/0,0",
                                      "1/1/1/0,0",
                                      "2,3,3/1,2,1/1,1,1/1,1,1,0,1,1",
                                      "3,3,3/1,1,1/1,1,1/1,1,1,1,1,1",
                                      "3,3,3/1,1,1/1,1,1/2,1,1,0,1,1",
                                      "1,3,3/1,1,1/1,1,1/0,1,1,0,1,1",
                                      "1,3,3/1,1,1/1,1,1/2,1,1,1,1,1",
                                      "3,1,1/2,1,1/1,1,1/1,0,0,1,0,0",
                                      "1,1,1/1,1,1/1,1,1/0,0,0,0,0,0"});

std::vector<Axis> axes(std::vector<Axis> own, const Axis& residual) {
  const Axis images =
      words("image", {"1,1", "5,5", "7,9", "9,6", "14,13", "17,16", "1,40", "12,1", "11,3"});  // columns
  for (Axis axis : {kWindow, images, numbers("channels", {1, 3, 4, 6, 8, 15, 16, 17, 20, 33, 64}),
                    numbers("filters", {1, 2, 3, 16, 17, 31, 32, 33, 64, 70}),
                    words("groups", {"one", "one", "one", "each", "each", "each twice", "each twice", "each five times",
                                     "two", "in twos", "in fours", "in eights", "in sixteens", "in 32s"}),
                    words("layouts", {"ll", "ll", "ff", "fl", "lf"}), numbers("batch", {0, 1, 1, 2}), residual,
                    numbers("constant", {1, 1, 1, 0})})
    own.push_back(std::move(axis));
  for (Axis& axis : activations()) own.push_back(std::move(axis));
  return own;
}

}  // namespace

std::vector<Domain> convolution_domains() {
  const std::vector<Special> all = {Special::nan, Special::infinite, Special::huge, Special::tiny};
  const Axis any = words("residual", {"none", "none", "before", "after", "times"});
  const std::vector<Axis> narrow = axes({flag("has_bias"), flag("x_narrow"), flag("residual_narrow")}, any);
  // With a slope for each channel, too.
  std::vector<Axis> bent = axes({flag("has_bias"), words("pre_activation", {"None", "None", "Relu"})}, any);
  const auto activation = std::ranges::find(bent, "activation", &Axis::name);
  activation->values.insert(activation->values.end(), 3, std::string("PRelu"));
  const std::vector<Axis> many =
      narrowed(axes({flag("has_bias"), words("pre_activation", {"None"})}, any),
               {words("window", {"1,1/1,1/1,1/0,0,0,0", "1/1/1/0,0"}), words("image", {"9,11", "17,16"}),
                numbers("channels", {130, 192, 800}), numbers("filters", {100, 128, 333}), words("groups", {"one"}),
                words("layouts", {"ll"}), numbers("batch", {1, 2}), numbers("constant", {1}),
                words("activation", {"None", "Relu", "Gelu"})});
  // What oneDNN gets wrong on AMX.
  const std::vector<Axis> wide =
      narrowed(narrow, {words("window", {"2,8/2,8/1,1/0,0,0,0", "1,16/1,1/1,1/0,8,0,7"}), words("image", {"17,16"}),
                        words("groups", {"one", "in fours", "in eights"}), numbers("channels", {4, 6, 8, 12}),
                        numbers("filters", {32}), numbers("batch", {1}), words("activation", {"None", "Relu"})});
  return {{"Conv", bent, conv, all},
          {"Conv", many, conv, all},
          {"ConvBf16", narrow, conv_bf16, all},
          {"ConvBf16", wide, conv_bf16, all},
          {"ConvToBf16", narrow, conv_bf16, all},
          {"QConv",
           axes({reals("x_scale", {0.0203f, 0.004f}), numbers("x_zero_point", {0, 77, 128, 255}),
                 reals("y_scale", {0.0307f, 0.0079f}), numbers("y_zero_point", {0, 110, 255}),
                 reals("residual_scale", {0.02371f, 0.1f}), numbers("residual_zero_point", {0, 130, 255}),
                 numbers("largest", {127, 64})},  // at most 64: bounded in pairs (src/core/bounded_pairs.h)
                words("residual", {"none", "none", "before", "after"})),
           qconv}};
}

}  // namespace modelflow::domains
