// What works on images with channels: pools, repeated pixels, gates, group norms, and steps in and out of 8 bits.
#include <algorithm>
#include <numeric>

#include "src/core/bf16.h"
#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

const std::vector<Special> kAll = {Special::nan, Special::infinite, Special::huge, Special::tiny};
const Axis kImage = words("image", {"1", "7", "33", "1,1", "3,4", "5,1", "9,7", "2,19", "20,20"});
const Axis kChannels = numbers("channels", {1, 2, 3, 8, 15, 16, 17, 33, 64, 65, 130});
const Axis kBatch = numbers("batch", {0, 1, 2, 3});

/// The batch, the image, and the channels where the layout has them.
Dims placed(const Chosen& c, bool last) {
  Dims dims = c.list("image");
  dims.insert(dims.begin(), c.number("batch"));
  dims.insert(last ? dims.end() : dims.begin() + 1, c.number("channels"));
  return dims;
}

bool pool(const Chosen& c, Operands& made) {
  const Dims x = placed(c, true);
  const std::string mode = c.word("mode"), kind = made.call.op;
  const auto rank = c.list("image").size();
  Ints kernel, strides(rank, c.number("stride")), pads;
  for (std::size_t i = 0; i < rank; ++i) kernel.push_back(i ? c.number("wide") : c.number("high"));
  for (std::size_t i = 0; i < 2 * rank; ++i)
    pads.push_back(std::min(c.number(i < rank ? "before" : "behind"), kernel[i % rank] - 1));
  if (c.is("ceil_mode") && c.is("count_include_pad")) return false;  // refused
  for (std::size_t i = 0; i < rank; ++i)
    if (x[i + 1] + pads[i] + pads[i + rank] - kernel[i] <= -strides[i]) return false;  // no window at all
  // ONNX Runtime drops a NaN from the windows that it is not the first of, and begins with the lowest number instead of
  // -inf where it pads or has one axis; here NaN stays, and so does -inf.
  if (mode == "max" && (made.special() == Special::nan || made.special() == Special::infinite)) return false;
  if (mode != "global_average") made.call.attrs.set("kernel_shape", kernel).set("strides", strides).set("pads", pads);
  if (kind == "QPool") return made.feed("x", made.bytes(x)), true;
  const Tensor numbers = made.normal(x);
  made.feed("x", kind == "PoolBf16" && c.is("narrow") ? to_bf16(numbers) : numbers);
  return true;
}

bool repeated(const Chosen& c, Operands& made) {
  const Dims x = placed(c, true);
  const Ints all = {c.number("down"), c.number("across")};
  made.call.attrs.set("factors", Ints(all.begin(), all.begin() + std::ssize(c.list("image"))));
  made.call.op == "QUpsample" ? made.feed("x", made.bytes(x)) : made.feed("x", made.normal(x));
  return true;
}

/// Between two axes ONNX Runtime interpolates three of which one stays: its NaN of 0 * inf comes from other channels.
bool upsample(const Chosen& c, Operands& made) {
  Attrs& attrs = made.call.attrs;
  if (c.word("mode") == "nearest") return attrs.set("layout", "NHWC"), repeated(c, made);
  const Dims image = c.list("image");
  const bool cubic = c.word("mode") == "cubic", flat = image.size() == 1;
  if (flat && (cubic || made.special() == Special::nan || made.special() == Special::infinite)) return false;
  if (!cubic) attrs.set("exclude_outside", 0);
  const bool last = c.word("layout") == "NHWC";
  const Dims x = placed(c, last);
  made.feed("x", made.normal(x));
  if (c.word("by") == "scales") {
    Floats scales = {c.real("taller"), c.real("wider")};
    scales.resize(image.size());
    attrs.set("scales", scales);
    return true;
  }
  Ints sizes = {c.number("batch"), c.number("channels"), c.number("high"), c.number("wide")};
  sizes.resize(x.size());
  for (std::size_t i = 0; i < image.size(); ++i)
    if (image[i] == 0) sizes[i + 2] = 0;
  made.constant("sizes", Tensor::of<std::int64_t>({std::ssize(sizes)}, sizes), c.is("constant"));
  return true;
}

/// Images side by side; channels in turn, of one image or of one for each group.
bool concat(const Chosen& c, Operands& made) {
  const std::int64_t groups = c.number("in_turn"), each = c.number("channels");
  const std::int64_t inputs = groups == 1 ? c.number("inputs") : c.is("one") ? 1 : groups;
  const Dims image = c.list("size"), growing = c.list("factors");
  Ints factors;
  for (std::int64_t i = 0; i < inputs; ++i) {
    const bool grows = i % 2 == c.number("first");
    const std::int64_t down = grows ? growing[0] : 1, across = grows ? growing[1] : 1;
    factors.insert(factors.end(), {down, across});
    const std::int64_t channels = groups > 1 ? each * groups / inputs : i == 0 ? each : 1 + made.below(40);
    made.feed(("x" + std::to_string(i)).c_str(),
              made.normal({c.number("batch"), image[0] * growing[0] / down, image[1] * growing[1] / across, channels}));
  }
  made.call.attrs.set("factors", factors).set("groups", Ints{groups});
  return true;
}

/// Axes in the order that sorting drawn numbers gives.
bool transpose(const Chosen& c, Operands& made) {
  const Dims x = c.list("shape");
  Ints perm(x.size());
  std::iota(perm.begin(), perm.end(), 0);
  for (std::size_t i = perm.size(); i > 1; --i)
    std::swap(perm[i - 1], perm[static_cast<std::size_t>(made.below(static_cast<std::int64_t>(i)))]);
  made.feed("x", made.normal(x));
  made.call.attrs.set("perm", perm);
  return true;
}

bool squeeze_excite(const Chosen& c, Operands& made) {
  const bool bytes = made.call.op == "QSqueezeExcite", constant = c.is("constant");
  const Dims x = placed(c, c.word("layout") == "NHWC");
  const std::int64_t channels = c.number("channels"), squeezed = c.number("squeezed");
  bytes ? made.feed("x", made.bytes(x)) : made.feed("x", made.normal(x));
  const auto convolution = [&](const std::string& number, std::int64_t out, std::int64_t in) {
    Dims w(x.size(), 1);
    w[0] = out, w[1] = in;
    if (bytes) {
      made.constant(("w" + number).c_str(), made.steps(w), constant);
      made.constant(("w" + number + "_scale").c_str(),
                    made.uniform({out}, 0.5f / 127 / static_cast<float>(in), 2.0f / 127 / static_cast<float>(in)),
                    constant);
    } else {
      made.constant(("w" + number).c_str(), made.weights(w, in), constant);
    }
    made.constant(("b" + number).c_str(), made.uniform({out}, -1, 1), constant);
  };
  convolution("1", squeezed, channels);
  convolution("2", channels, squeezed);
  return true;
}

bool group_norm(const Chosen& c, Operands& made) {
  const std::int64_t groups = c.number("num_groups");
  Chosen all = c;
  all.set("channels", groups * c.number("per_group"));
  made.feed("x", made.normal(placed(all, c.word("layout") == "NHWC")));
  made.constant("scale", made.uniform({all.number("channels")}, 0.5, 2), c.is("constant"));
  made.constant("bias", made.uniform({all.number("channels")}, -1, 1), c.is("constant"));
  return true;
}

/// (n + 1/2) * scale, in the middle of two steps.
Tensor halves_of(const Tensor& steps, float scale) {
  return Tensor::make(DType::f32, steps.dims(), [&](std::byte* bytes) {
    const auto* from = reinterpret_cast<const std::int8_t*>(steps.data());
    std::transform(from, from + steps.elements(), reinterpret_cast<float*>(bytes),
                   [scale](int n) { return (static_cast<float>(n) + 0.5f) * scale; });
  });
}

bool convert(const Chosen& c, Operands& made) {
  const bool quantizes = made.call.op == "Quantize";
  if (c.word("x_layout") != c.word("y_layout") && (c.word("x_layout") == "NHWC") == quantizes) return false;
  const Dims x = c.list("x");
  if (quantizes && c.is("halves"))
    made.feed_as_is("x", halves_of(made.steps(x), c.real("scale")));
  else
    quantizes ? made.feed("x", made.normal(x)) : made.feed("x", made.bytes(x));
  return true;
}

bool qadd(const Chosen& c, Operands& made) {
  const std::string shapes = c.word("shapes");
  made.feed("a", made.bytes(Chosen::numbers_in(shapes.substr(0, shapes.find('|')))));
  made.feed("b", made.bytes(Chosen::numbers_in(shapes.substr(shapes.find('|') + 1))));
  return true;
}

std::vector<Axis> excite_axes(bool bytes) {
  std::vector<Axis> axes = activations();
  for (Axis axis :
       {kImage, kChannels, numbers("batch", {0, 1, 2}), numbers("squeezed", {1, 3, 16, 33, 70}),
        words("layout", {"NHWC", "NCHW"}), words("gate", {"Sigmoid", "HardSigmoid"}), reals("gate_alpha", {0.2f, 0.5f}),
        reals("gate_beta", {0.5f, 0.1f}), flag("skip"), numbers("constant", {1, 1, 1, 0})})
    axes.push_back(std::move(axis));
  if (!bytes) return axes;
  for (Axis axis : {numbers("x_zero_point", {0, 100, 255}), numbers("y_zero_point", {0, 31, 255}),
                    reals("x_scale", {0.0231f, 0.004f}), reals("y_scale", {0.0173f, 0.1f})})
    axes.push_back(std::move(axis));
  return axes;
}

std::vector<Axis> pool_axes() {
  Axis images = kImage;
  images.values.insert(images.values.end(), {"3,4,5", "5,2,7", "1,6,3"});
  return {images,
          kChannels,
          kBatch,
          words("mode", {"max", "average", "global_average"}),
          numbers("high", {1, 2, 3, 5}),
          numbers("wide", {1, 2, 3, 4}),
          numbers("stride", {1, 2, 3}),
          numbers("before", {0, 1, 2}),
          numbers("behind", {0, 1, 2}),
          flag("ceil_mode"),
          flag("count_include_pad"),
          flag("narrow")};
}

std::vector<Axis> upsample_axes() {
  return {words("image", {"1", "7", "33", "1,1", "3,4", "5,1", "9,7", "2,19", "20,20", "0,3", "40,70"}),
          numbers("channels", {1, 2, 3, 8, 15, 17, 19, 21, 64, 256}),
          kBatch,
          numbers("down", {1, 2, 3, 8}),
          numbers("across", {1, 2, 5}),
          words("mode", {"nearest", "linear", "cubic", "linear", "cubic"}),
          words("layout", {"NHWC", "NCHW"}),
          words("coordinate_transformation_mode", {"half_pixel", "align_corners", "pytorch_half_pixel", "asymmetric"}),
          reals("cubic_coeff_a", {-0.75f, -0.5f}),
          flag("exclude_outside"),
          words("by", {"scales", "sizes"}),
          reals("taller", {2, 0.5f, 1.5f, 0.3f, 1, 1.02f, 4}),
          reals("wider", {2, 0.7f, 3.3f, 8, 1, 1.04f}),
          numbers("high", {1, 2, 5, 16, 33}),
          numbers("wide", {1, 3, 16, 70}),
          flag("constant")};
}

}  // namespace

std::vector<Domain> image_domains() {
  const std::vector<Axis> factors = {kImage, kChannels, kBatch, numbers("down", {1, 2, 3, 8}),
                                     numbers("across", {1, 2, 5})};
  const std::vector<Axis> converted = {words("x", {"", "0", "1", "77", "2,31", "5,1030", "1,3,64", "2,40,13", "3,17,5",
                                                   "1,16,9,8", "2,65,7,3", "2,1,3,4,2", "0,3,4,4", "1,3,33,31"}),
                                       words("x_layout", {"NCHW", "NHWC"}),
                                       words("y_layout", {"NCHW", "NHWC"}),
                                       reals("scale", {0.0173f, 0.5f, 0.002f, 0.3f}),
                                       numbers("zero_point", {0, 3, 128, 255}),
                                       flag("halves")};
  std::vector<Axis> groups = activations();
  for (Axis axis :
       {kImage, kBatch, numbers("num_groups", {1, 2, 3, 8, 32, 160}), numbers("per_group", {1, 2, 5, 16, 17}),
        words("layout", {"NHWC", "NCHW"}), reals("epsilon", {1e-5f, 1e-3f}), flag("constant")})
    groups.push_back(std::move(axis));
  const auto side = [](const char* name) { return numbers(name, {0, 3, 99, 255}); };
  return {
      {"Pool", pool_axes(), pool, kAll},
      {"PoolBf16", pool_axes(), pool, kAll},
      {"QPool", pool_axes(), pool, {}, {"count_include_pad"}},
      {"Upsample", upsample_axes(), upsample, kAll},
      {"QUpsample", factors, repeated},
      {"Transpose",
       {words("shape", {"1", "7", "0,3", "3,0,2", "5,1", "33,17", "130,70", "16,16", "2,3,4", "1,31,1,18", "4,16,65",
                        "129,2,66", "2,3,5,7", "3,17,2,34", "2,2,2,2,2", "3,1,4,1,20", "2,3,2,19,5", "1,2,3,4,5,6"}),
        numbers("draw", {0, 1, 2, 3, 4, 5, 6, 7})},
       transpose,
       kAll},
      {"Concat",
       {numbers("batch", {0, 1, 2}), numbers("inputs", {2, 3, 5, 8}), words("size", {"1,1", "2,3", "5,2", "8,8"}),
        words("factors", {"1,1", "2,2", "1,3", "4,2"}), flag("first"), kChannels, numbers("in_turn", {1, 1, 2, 3, 4}),
        flag("one")},
       concat,
       kAll},
      {"SqueezeExcite", excite_axes(false), squeeze_excite, {Special::nan, Special::huge, Special::tiny}},
      {"QSqueezeExcite", excite_axes(true), squeeze_excite},
      {"GroupNorm", groups, group_norm, {Special::nan, Special::infinite, Special::tiny}},
      {"Quantize", converted, convert, kAll},
      {"Dequantize", converted, convert},
      {"QAdd",
       {words("shapes", {"|", "0|0", "1|1", "77|77", "2,9,31|2,1,31", "2,1|1,65", "1,7,7,16|1,7,7,16", "3,1,5|3,4,1",
                         "2,130|2,130", "0,4|1,4"}),
        words("activation", {"None", "Relu"}), side("a_zero_point"), side("b_zero_point"), side("y_zero_point"),
        // Sums of 0.1 and 0.1 or 0.3 in steps of 0.2 are halves as often as not.
        reals("a_scale", {0.031f, 0.0071f, 0.1f}), reals("b_scale", {0.017f, 0.09f, 0.1f, 0.3f}),
        reals("y_scale", {0.0251f, 0.3f, 0.2f})},
       qadd},
  };
}

}  // namespace modelflow::domains
