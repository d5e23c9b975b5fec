// Convolutions where the conformance walk cannot go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "backends/activation.h"
#include "backends/host_invocation.h"
#include "backends/ops/activation_body.h"
#include "backends/ops/conv_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow {
namespace {

using ops::ConvAttrs;
using ops::Residual;

Tensor random(const Dims& dims, unsigned seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < element_count(dims); ++i) reinterpret_cast<float*>(bytes)[i] = uniform(engine);
  });
}

// Channels second seen from plain indices, whatever the layout in memory.
std::int64_t offset(const Dims& dims, bool last, std::int64_t n, std::int64_t c, const Dims& at) {
  const std::size_t rank = dims.size() - 2;
  std::int64_t index = n;
  if (!last) index = index * dims[1] + c;
  for (std::size_t i = 0; i < rank; ++i) index = index * dims[i + (last ? 1 : 2)] + at[i];
  return last ? index * dims[rank + 1] + c : index;
}

// Counts through all positions of a box; false behind the last one.
bool next(Dims& at, const Dims& box) {
  for (std::size_t i = at.size(); i-- > 0;) {
    if (++at[i] < box[i]) return true;
    at[i] = 0;
  }
  return false;
}

// The sum for one element of y, in double.
double sum_at(const ConvAttrs& conv, const Tensor& x, const Tensor& w, std::int64_t n, std::int64_t m, const Dims& at) {
  const std::int64_t per_group = w.dims()[1], group = m / (w.dims()[0] / conv.group);
  const std::size_t taps = static_cast<std::size_t>(element_count(conv.kernel));
  const std::size_t x_step =
      conv.x_last ? 1 : static_cast<std::size_t>(element_count(Dims(x.dims().begin() + 2, x.dims().end())));
  double sum = 0;
  Dims tap(conv.rank(), 0), from(conv.rank());
  do {
    bool inside = true;
    for (std::size_t i = 0; i < conv.rank(); ++i) {
      from[i] = at[i] * conv.strides[i] - conv.pads[i] + tap[i] * conv.dilations[i];
      inside = inside && from[i] >= 0 && from[i] < x.dims()[i + (conv.x_last ? 1 : 2)];
    }
    if (!inside) continue;
    const float* a =
        &x.as<float>()[static_cast<std::size_t>(offset(x.dims(), conv.x_last, n, group * per_group, from))];
    const float* b = &w.as<float>()[static_cast<std::size_t>(offset(w.dims(), false, m, 0, tap))];
    for (std::int64_t c = 0; c < per_group; ++c, a += x_step, b += taps) sum += static_cast<double>(*a) * *b;
  } while (next(tap, conv.kernel));
  return sum;
}

/// x as a convolution that activates it first has it.
Tensor activated(const ConvAttrs& conv, const std::vector<Tensor>& in) {
  std::vector<float> x(in[0].as<float>().begin(), in[0].as<float>().end());
  const auto scale = in[conv.pre_index()].as<float>(), shift = in[conv.pre_index() + 1].as<float>();
  const std::size_t channels = scale.size(),
                    pixels = conv.x_last || channels == 0
                                 ? 1
                                 : x.size() / (channels * static_cast<std::size_t>(in[0].dims()[0]));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / pixels % channels;
    x[i] = std::max(0.0F, x[i] * scale[c] + shift[c]);
  }
  return Tensor::of<float>(in[0].dims(), std::span<const float>(x));
}

std::vector<float> reference(const Call& call, const std::vector<Tensor>& in) {
  const ConvAttrs conv(call);
  const Tensor x = conv.has_pre ? activated(conv, in) : in[0];
  ActivationSpec activation = activation_of(call);
  const Dims y = conv.output_dims(in[0].dims(), in[1].dims()[0]);
  const auto box = Dims(y.begin() + (conv.y_last ? 1 : 2), y.end() - (conv.y_last ? 1 : 0));
  std::vector<float> result(static_cast<std::size_t>(element_count(y)));
  if (result.empty()) return result;
  for (std::int64_t n = 0; n < y[0]; ++n) {
    for (std::int64_t m = 0; m < in[1].dims()[0]; ++m) {
      Dims at(conv.rank(), 0);
      do {
        const auto to = static_cast<std::size_t>(offset(y, conv.y_last, n, m, at));
        double v = sum_at(conv, x, in[1], n, m, at);
        if (conv.has_bias) v += in[2].as<float>()[static_cast<std::size_t>(m)];
        if (conv.residual == Residual::before) v += in[conv.residual_index()].as<float>()[to];
        if (conv.has_slopes) activation.alpha = in[conv.slopes_index()].as<float>()[static_cast<std::size_t>(m)];
        v = activate(activation, static_cast<float>(v));
        if (conv.residual == Residual::after) v += in[conv.residual_index()].as<float>()[to];
        if (conv.residual == Residual::times) v *= in[conv.residual_index()].as<float>()[to];
        result[to] = static_cast<float>(v);
      } while (next(at, box));
    }
  }
  return result;
}

std::vector<Tensor> operands(const Call& call, Dims x = {}) {
  const ConvAttrs conv(call);
  std::vector<Tensor> in;
  in.push_back(random(x.empty() ? call.in(0).shape.values() : x, 1));
  for (std::size_t i = 1; i < conv.residual_index(); ++i) in.push_back(*call.in(i).constant);
  if (conv.residual != Residual::none) in.push_back(random(conv.output_dims(in[0].dims(), in[1].dims()[0]), 2));
  return in;
}

/// Sums that cancel keep the rounding of what they are made of: the largest result says how large that is.
void expect_near(const std::vector<float>& want, const Tensor& got, const std::string& what) {
  ASSERT_EQ(want.size(), static_cast<std::size_t>(got.elements())) << what;
  const auto values = got.as<float>();
  float largest = 0;
  for (const float x : want) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(values[i], want[i], 2e-5 * largest) << what << " at " << i << ", the largest is " << largest;
}

std::string describe(const Kernel& kernel, const Call& call) {
  std::string text = std::string(kernel.name) + " x" + call.in(0).shape.str() + " w" + call.in(1).shape.str();
  for (const char* name : {"x_layout", "y_layout", "activation", "residual"}) text += " " + CallAttrs(call).text(name);
  for (const char* name : {"strides", "pads", "dilations"}) {
    text += " " + std::string(name);
    for (std::int64_t v : CallAttrs(call).ints(name)) text += " " + std::to_string(v);
  }
  return text;
}

/// Counts the scratch memory that a kernel asks for.
class CountedInvocation : public HostInvocation {
 public:
  using HostInvocation::HostInvocation;
  std::byte* scratch(std::size_t bytes) override {
    asked += bytes;
    return HostInvocation::scratch(bytes);
  }
  std::size_t asked = 0;
};

// The call with constant weights of its own.
struct Case {
  std::vector<Tensor> constants;
  Call call;

  Case(Dims x, Dims w, Attrs attrs) : call(ops::conv_call(std::move(x), std::move(w), std::move(attrs))) {
    constants.push_back(random(call.in(1).shape.values(), 3, 0.3f));
    constants.push_back(random({call.in(1).shape[0].value()}, 4));
    for (std::size_t i = 1; i < 2u + ConvAttrs(call).has_bias; ++i) call.inputs[i].constant = &constants[i - 1];
  }
};

// Every kernel that takes the call against the sum; `x` are other extents than those it was made for.
void check(const Call& call, Dims x = {}, std::size_t threads = 2) {
  HostThreads pool(threads);
  const std::vector<Tensor> in = operands(call, x);
  const std::vector<float> want = reference(call, in);
  for (const Kernel* kernel : kernels()) {
    if (!kernel->takes(call, Target::host())) continue;
    HostInvocation run(pool, in);
    kernel->create(call, Target::host())->run(run);
    ASSERT_NO_FATAL_FAILURE(expect_near(want, run.result(0), describe(*kernel, call)));
  }
}

TEST(Conv, KernelsAgreeWithTheSumOnEverySample) {
  for (const Call& call : ops::conv_samples()) ASSERT_NO_FATAL_FAILURE(check(call));
}

TEST(Conv, EverySampleHasAKernelHere) {
  for (const Call& call : ops::conv_samples()) EXPECT_TRUE(choose_kernel(call, Target::host()).kernel);
}

// Random shapes: every remainder of vectors, tiles and blocks, borders wider than the image, all layouts.
TEST(Conv, RandomShapes) {
  std::mt19937 engine(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(engine); };
  const auto layout = [&] { return std::string(pick(0, 2) ? "NHWC" : "NCHW"); };
  for (int round = 0; round < 200; ++round) {
    const std::int64_t kind = pick(0, 3), kh = pick(0, 1) ? 1 : pick(1, 5), kw = kind ? pick(1, 5) : kh;
    const std::int64_t groups = pick(2, 4), c = kind == 2 ? groups * pick(7, 34) : pick(1, 70);
    const std::int64_t group = kind == 1 ? c : kind == 2 ? groups : 1;
    const std::int64_t m = kind == 1 ? c : kind == 2 ? groups * pick(7, 42) : pick(1, 90);
    const Attrs attrs = {{"strides", Ints{pick(1, 3), pick(1, 3)}},
                         {"dilations", Ints{pick(1, 2), pick(1, 2)}},
                         {"pads", Ints{pick(0, 3), pick(0, 3), pick(0, 3), pick(0, 3)}},
                         {"group", group},
                         {"has_bias", pick(0, 1)},
                         {"residual", std::string(std::vector{"none", "before", "after", "times"}[pick(0, 3)])},
                         {"x_layout", layout()},
                         {"y_layout", layout()}};
    const std::int64_t h = pick(1, 12), w = pick(1, 40);
    const bool last = attrs.text("x_layout") == "NHWC";
    const Dims x = last ? Dims{pick(1, 2), h, w, c} : Dims{pick(1, 2), c, h, w};
    Attrs all = ops::activation_sample(std::vector{"None", "Relu", "HardSwish", "SiLU"}[pick(0, 3)]);
    for (const auto& [name, value] : attrs) all.set(name, value);
    const Case made(x, {m, c / group, kh, kw}, all);
    ASSERT_NO_FATAL_FAILURE(check(made.call));
  }
}

// Windows side by side, as wide as patches are: with pixels left over, several images, and more than one thread.
TEST(Conv, RandomPatches) {
  std::mt19937 engine(11);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(engine); };
  for (int round = 0; round < 60; ++round) {
    const std::int64_t kh = pick(1, 17), kw = pick(6, 17), c = pick(1, 4), rows = pick(0, 4), columns = pick(0, 9);
    Attrs all = ops::activation_sample(std::vector{"None", "Relu", "Gelu"}[pick(0, 2)]);
    all.set("strides", Ints{kh, kw}).set("has_bias", pick(0, 1)).set("x_layout", "NCHW");
    all.set("y_layout", std::vector{"NHWC", "NCHW"}[pick(0, 1)]);
    all.set("residual", std::vector{"none", "before", "after", "times"}[pick(0, 3)]);
    const Dims x = {pick(0, 3), c, rows * kh + pick(0, static_cast<int>(kh) - 1), columns * kw + pick(0, 5)};
    if (x[2] < kh || x[3] < kw) continue;
    const Case made(x, {pick(1, 70), c, kh, kw}, all);
    ASSERT_NO_FATAL_FAILURE(check(made.call, {}, static_cast<std::size_t>(pick(1, 4))));
  }
}

TEST(Conv, OneImplementationRunsOtherBatchesAndSizes) {
  const Case made({1, 8, 8, 24}, {24, 24, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"x_layout", "NHWC"}});
  for (const Dims& x : {Dims{3, 5, 31, 24}, Dims{0, 8, 8, 24}, Dims{1, 1, 1, 24}, Dims{1, 70, 9, 24}}) {
    ASSERT_NO_FATAL_FAILURE(check(made.call, x));
  }
}

TEST(Conv, WindowsOfNothingButPadding) {
  // By such numbers of threads oneDNN 3.7.2 ends the process.
  const Case three({1, 5, 4, 3, 3}, {3, 5, 3, 3, 3}, {{"pads", Ints{2, 0, 3, 2, 0, 4}}});
  ASSERT_NO_FATAL_FAILURE(check(three.call, {}, 28));
  const Case without_width({1, 16, 4, 9, 2}, {16, 16, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1, 1, 2}}});
  ASSERT_NO_FATAL_FAILURE(check(without_width.call, {1, 16, 4, 9, 0}));
}

constexpr std::size_t kLittle = 4 << 20;

/// A convolution of 3x3 windows on 4x4 pixels, with known extents and without: no kernel makes room for all of what
/// lies between pixels and around them.
void takes_little_memory(std::int64_t group, const char* layout, Attrs attrs) {
  HostThreads pool(2);
  const bool last = std::string_view(layout) == "NHWC";
  attrs.set("group", group).set("x_layout", std::string(layout));
  const Case made(last ? Dims{1, 4, 4, 16} : Dims{1, 16, 4, 4}, {16, 16 / group, 3, 3}, std::move(attrs));
  const std::vector<Tensor> in = operands(made.call);
  Call unknown = made.call;
  unknown.inputs[0].shape = Shape();
  for (const Call& call : {made.call, unknown}) {
    for (const Kernel* kernel : kernels()) {
      if (!kernel->takes(call, Target::host())) continue;
      CountedInvocation run(pool, in);
      kernel->create(call, Target::host())->run(run);
      EXPECT_LT(run.asked, kLittle) << describe(*kernel, call);
      ASSERT_NO_FATAL_FAILURE(expect_near(reference(made.call, in), run.result(0), describe(*kernel, call)));
    }
  }
}

/// Windows far wider than their image lie in padding; strides and borders are all that lies between its pixels.
TEST(Conv, FarWindowsAndStridesTakeLittleMemory) {
  const auto everywhere = [](const char* what, std::int64_t far) {
    for (const std::int64_t group : {1, 16})
      for (const char* layout : {"NHWC", "NCHW"})
        ASSERT_NO_FATAL_FAILURE(
            takes_little_memory(group, layout, {{what, Ints{far, far}}, {"pads", Ints{far, far, far, far}}}));
  };
  for (const std::int64_t far : {400L, 300000L}) ASSERT_NO_FATAL_FAILURE(everywhere("dilations", far));
  for (const std::int64_t far : {400L, 300000L, (1L << 31) - 1}) ASSERT_NO_FATAL_FAILURE(everywhere("strides", far));
}

/// The same numbers in other groups are packed in another way.
TEST(Conv, TwoGroupingsOfTheSameWeights) {
  const Case whole({1, 4, 4, 16}, {24, 16, 1, 1}, {{"x_layout", "NHWC"}});
  const Case halves({1, 4, 4, 32}, {24, 16, 1, 1}, {{"group", std::int64_t{2}}, {"x_layout", "NHWC"}});
  ASSERT_TRUE(whole.constants[0].same_content(halves.constants[0]));
  HostThreads pool(1);
  for (const Kernel* kernel : kernels()) {
    if (!kernel->takes(whole.call, Target::host()) || !kernel->takes(halves.call, Target::host())) continue;
    const auto first = kernel->create(whole.call, Target::host()), second = kernel->create(halves.call, Target::host());
    for (const auto& [made, implementation] : {std::pair(&whole, first.get()), std::pair(&halves, second.get())}) {
      const std::vector<Tensor> in = operands(made->call);
      HostInvocation run(pool, in);
      implementation->run(run);
      ASSERT_NO_FATAL_FAILURE(expect_near(reference(made->call, in), run.result(0), describe(*kernel, made->call)));
    }
  }
}

TEST(QConv, FarWindowsTakeLittleMemory) {
  HostThreads pool(2);
  for (Call call : find_fused_op("QConv")->samples()) {
    const ConvAttrs conv(call);
    if (conv.residual != Residual::none || call.in(1).constant->elements() > 1 << 16) continue;
    constexpr std::int64_t kFar = 50000;
    Ints pads;
    for (std::size_t i = 0; i < 2 * conv.rank(); ++i) pads.push_back((conv.kernel[i % conv.rank()] - 1) / 2 * kFar);
    call.attrs.set("dilations", Ints(conv.rank(), kFar)).set("pads", pads);
    ASSERT_TRUE(find_fused_op("QConv")->infer(call));
    std::vector<Tensor> in = {Tensor::make(DType::u8, call.in(0).shape.values(), [&](std::byte* bytes) {
      std::fill_n(bytes, byte_count(DType::u8, call.in(0).shape.values()), std::byte{100});
    })};
    for (std::size_t i = 1; i < call.inputs.size(); ++i) in.push_back(*call.in(i).constant);
    for (const Kernel* kernel : kernels()) {
      if (!kernel->takes(call, Target::host())) continue;
      CountedInvocation run(pool, in);
      kernel->create(call, Target::host())->run(run);
      EXPECT_LT(run.asked, kLittle) << describe(*kernel, call);
    }
  }
}

/// Padding alone gives pixels of an image without width: a result or an error, and the process goes on.
TEST(QConv, AnImageWithoutWidth) {
  HostThreads pool(2);
  for (Call call : find_fused_op("QConv")->samples()) {
    Ints pads = ConvAttrs(call).kernel;
    pads.insert(pads.end(), pads.begin(), pads.end());
    call.attrs.set("pads", pads);
    const ConvAttrs conv(call);
    Dims x = call.in(0).shape.values();
    x[x.size() - (conv.x_last ? 2 : 1)] = 0;
    if (conv.residual != Residual::none) continue;
    std::vector<Tensor> in = {Tensor::make(DType::u8, x, [](std::byte*) {})};
    for (std::size_t i = 1; i < call.inputs.size(); ++i) in.push_back(*call.in(i).constant);
    for (const Kernel* kernel : kernels()) {
      if (!kernel->takes(call, Target::host())) continue;
      HostInvocation run(pool, in);
      try {
        kernel->create(call, Target::host())->run(run);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::invalid_input) << kernel->name;
      }
    }
  }
}

Tensor sizes(const Tensor& of) {
  return Tensor::make(DType::f32, of.dims(), [&](std::byte* bytes) {
    std::ranges::transform(of.as<float>(), reinterpret_cast<float*>(bytes), [](float x) { return std::abs(x); });
  });
}

/// Whether a window of three pixels in every direction, that of this pixel of y (channels last), holds one of x.
bool sees(std::int64_t pixel, const Dims& y, const ConvAttrs& conv, const Dims& other) {
  for (std::size_t axis = other.size(); axis-- > 0; pixel /= y[axis + 1])
    if (std::abs(pixel % y[axis + 1] * conv.strides[axis] - other[axis]) > 1) return false;
  return true;
}

/// Those of this machine.
std::vector<const Kernel*> winograd_kernels() {
  std::vector<const Kernel*> found;
  for (const Kernel* kernel : kernels())
    if (std::string_view(kernel->name).find("winograd") != std::string_view::npos && kernel->fits(Target::host()))
      found.push_back(kernel);
  return found;
}

/// Results of Winograd's method as far as they do not see one pixel, compared with what sums of float32 come to.
void check_beside(const Case& made, const Tensor& x, const Dims& large) {
  const std::vector<Tensor> in = {x, made.constants[0]};
  const std::vector<float> want = reference(made.call, in), size = reference(made.call, {sizes(x), sizes(in[1])});
  const ConvAttrs conv(made.call);
  const Dims y = conv.output_dims(x.dims(), in[1].dims()[0]);
  HostThreads pool(2);
  for (const Kernel* kernel : winograd_kernels()) {
    ASSERT_TRUE(kernel->takes(made.call, Target::host())) << kernel->name;
    HostInvocation run(pool, in);
    kernel->create(made.call, Target::host())->run(run);
    const Tensor got = run.result(0);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto pixel = static_cast<std::int64_t>(i) / y.back();
      if (sees(pixel, y, conv, large)) continue;
      ASSERT_NEAR(got.as<float>()[i], want[i], 3e-6 * size[i]) << describe(*kernel, made.call) << " at pixel " << pixel;
    }
  }
}

TEST(Conv, ALargePixelLeavesOtherResultsAlone) {
  // Tiles of 4 results with weights that stay in L2 and that do not, tiles of 2, some of several planes, of groups, and
  // of strides. Pixels that are more than 16 times as large as others in the mean (0.6) count as far.
  struct Layer {
    Dims dims;
    std::int64_t stride = 1, group = 1;
  };
  for (const auto& [dims, stride, group] :
       {Layer{{1, 28, 20, 64}}, Layer{{1, 28, 20, 96}}, Layer{{1, 2, 30, 64}}, Layer{{1, 4, 8, 12, 64}},
        Layer{{1, 3, 4, 11, 64}}, Layer{{1, 24, 24, 144}, 1, 3}, Layer{{1, 31, 40, 96}, 2}, Layer{{1, 600, 256}, 2}}) {
    const std::size_t rank = dims.size() - 2;
    Dims weights(rank + 2, 3), large_at(rank, 1);
    weights[0] = dims.back(), weights[1] = dims.back() / group;
    if (rank > 1) large_at[rank - 2] = dims[rank - 1] / 2;
    large_at[rank - 1] = 9;
    const Case made(dims, weights,
                    {{"pads", Ints(2 * rank, 1)},
                     {"strides", Ints(rank, stride)},
                     {"group", group},
                     {"x_layout", "NHWC"},
                     {"y_layout", "NHWC"}});
    std::int64_t first = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) first = first * dims[axis + 1] + large_at[axis];
    for (const float large : {20.0f, 1e6f, 1e30f, std::numeric_limits<float>::infinity()}) {
      for (const float others : {1.0f, 1e-25f, 0.0f}) {  // of sizes whose squares are numbers or not, and of none
        const Tensor x = random(dims, 1, others),
                     spoiled = Tensor::make(DType::f32, dims, [&](std::byte*bytes) {
                       std::copy_n(x.data(), byte_count(DType::f32, dims), bytes);
                       std::fill_n(reinterpret_cast<float*>(bytes) + first * dims.back(), dims.back(), large);
                     });
        ASSERT_NO_FATAL_FAILURE(check_beside(made, spoiled, large_at)) << large << " " << others;
      }
    }
  }
}

/// What Winograd's kernels make of it, for x of other extents too; how many kernels there were.
std::size_t check_winograd(const Case& made, const std::vector<Dims>& all, std::size_t threads) {
  HostThreads pool(threads);
  std::size_t count = 0;
  for (const Kernel* kernel : winograd_kernels()) {
    if (!kernel->takes(made.call, Target::host())) continue;
    const auto implementation = kernel->create(made.call, Target::host());
    for (const Dims& x : all) {
      const std::vector<Tensor> in = operands(made.call, x);
      HostInvocation run(pool, in);
      implementation->run(run);
      expect_near(reference(made.call, in), run.result(0), describe(*kernel, made.call));
    }
    ++count;
  }
  return count;
}

// Taps that see nothing but padding, in front and behind; more planes than a stack has, the last stack with fewer;
// weights that all tiles meet once; images with padded planes.
TEST(Conv, MinimalFilteringOverThreeAxes) {
  struct Layer {
    Dims x, w;
    Ints pads;
    std::vector<Dims> others;
    std::size_t threads;
  };
  const std::vector<Layer> layers = {
      {{1, 1, 20, 20, 64}, {64, 64, 3, 3, 3}, {2, 1, 1, 0, 1, 1}, {{1, 5, 9, 20, 64}, {2, 2, 7, 9, 64}}, 2},
      {{1, 1, 20, 20, 64}, {64, 64, 3, 3, 3}, {1, 1, 1, 1, 1, 1}, {{3, 1, 8, 8, 64}}, 1},
      {{1, 29, 3, 11, 64}, {64, 64, 3, 3, 3}, {1, 1, 1, 1, 1, 1}, {{1, 2, 3, 11, 64}, {0, 3, 3, 11, 64}}, 16},
      {{1, 3, 4, 4, 256}, {256, 256, 3, 3, 3}, {1, 1, 1, 1, 1, 1}, {{1, 1, 4, 4, 256}}, 2},
      {{1, 3, 12, 12, 48}, {48, 48, 1, 3, 3}, {2, 1, 1, 1, 1, 1}, {{1, 1, 5, 12, 48}}, 2}};
  for (const Layer& layer : layers) {
    const Case made(layer.x, layer.w, {{"pads", layer.pads}, {"x_layout", "NHWC"}, {"y_layout", "NHWC"}});
    std::vector<Dims> all = layer.others;
    all.push_back(layer.x);
    EXPECT_EQ(check_winograd(made, all, layer.threads) > 0, Target::host().has(Isa::avx2))
        << describe(*kernels().front(), made.call);
  }
}

// Extents that tiles divide and those that they do not, borders, borders on one side, more than one plane, and groups
// of all sizes.
TEST(Conv, MinimalFilteringOfStridesAndGroups) {
  std::mt19937 engine(17);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(engine); };
  std::size_t checked = 0;
  for (int round = 0; round < 40; ++round) {
    const auto rank = static_cast<std::size_t>(pick(1, 3));
    const std::int64_t group = rank > 1 ? pick(1, 3) : 1, stride = rank > 1 && group > 1 ? pick(1, 2) : 2;
    const std::int64_t channels = pick(64, 160) / group, filters = pick(64, 160) / group * group;
    Ints strides(rank, stride), pads(2 * rank);
    if (rank == 3) strides[0] = 1;
    for (std::int64_t& pad : pads) pad = pick(0, 2);
    Dims x = {pick(1, 2)}, weights = {filters, channels};
    for (std::size_t axis = 0; axis < rank; ++axis) {
      x.push_back(rank == 1 ? pick(100, 200) : axis + 2 < rank ? pick(1, 2) : pick(20, 30));
      weights.push_back(axis + 2 < rank ? pick(1, x.back()) : 3);
    }
    x.push_back(group * channels);
    Attrs all = ops::activation_sample(std::vector{"None", "Relu", "HardSwish", "SiLU"}[pick(0, 3)]);
    all.set("strides", strides).set("pads", pads).set("group", group).set("has_bias", pick(0, 1));
    all.set("residual", std::vector{"none", "before", "after", "times"}[pick(0, 3)]);
    all.set("x_layout", "NHWC").set("y_layout", "NHWC");
    const Case made(x, weights, all);
    Dims longer = x;
    longer[longer.size() - 2] += pick(1, 9);
    ASSERT_NO_FATAL_FAILURE(checked += check_winograd(made, {x, longer}, static_cast<std::size_t>(pick(1, 4))));
  }
  EXPECT_EQ(checked >= 10, Target::host().has(Isa::avx2)) << checked;
}

TEST(Conv, WrongShapesAreRefusedAtRunTime) {
  const Case made({1, 8, 8, 24}, {24, 24, 3, 3}, {{"x_layout", "NHWC"}});
  HostThreads pool(1);
  for (const Dims& x : {Dims{1, 8, 8, 23}, Dims{1, 8, 24}}) {
    HostInvocation run(pool, {random(x, 1), made.constants[0]});
    const Kernel* kernel = choose_kernel(made.call, Target::host()).kernel;
    ASSERT_TRUE(kernel);
    EXPECT_THROW(kernel->create(made.call, Target::host())->run(run), Error);
  }
}

}  // namespace
}  // namespace modelflow
