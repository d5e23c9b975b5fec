// Group normalization. Moments are taken piece by piece, each read twice while it is in the first cache, and combined:
// memory is read once for them, and once more (from the second cache where a group fits it) for the result.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/channel_tensor.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/rows/kernels.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kPiece = 4096;        // floats that stay in the first cache
constexpr std::size_t kLarge = 8 * kPiece;  // in the second one
/// Floats of a group: moments of fewer cost more to combine than to take.
constexpr std::size_t kWorthwhile = 64;
constexpr std::size_t kWholeVectors = 16;  // floats, of every instruction set

/// One run: what all tasks read.
struct Problem {
  ChannelTensor t;
  std::size_t groups, channels_per_group;
  const float *x, *scale, *bias;
  float* y;
  float epsilon;
  ActivationSpec activation;
  const VectorCode& code;

  float factor(const Moments& moments) const { return 1 / std::sqrt(static_cast<float>(moments.variance()) + epsilon); }
  void finish(float* y, std::size_t n) const {
    if (activation.kind != Activation::none) code.pointwise.activate(activation, y, y, n);
  }
};

/// Channels second: the floats of a group lie side by side.
struct Planes {
  const Problem& p;
  std::size_t group_size() const { return p.channels_per_group * p.t.rows; }

  Moments moments(std::size_t group, std::size_t first, std::size_t last) const {
    Moments all;
    const float* x = p.x + group * group_size();
    for (std::size_t i = first; i < last; i += kPiece) all.add(p.code.norm.moments(x + i, std::min(kPiece, last - i)));
    return all;
  }

  void write(std::size_t group, std::size_t first, std::size_t last, const Moments& moments) const {
    const float inverse = p.factor(moments), mean = static_cast<float>(moments.mean);
    const std::size_t start = group * group_size(), channel = group % p.groups * p.channels_per_group;
    for (std::size_t i = first, end = 0; i < last; i = end) {
      const std::size_t c = i / p.t.rows;
      end = std::min({last, (c + 1) * p.t.rows, i + kPiece});
      p.code.norm.shift_and_scale(p.x + start + i, end - i, mean, inverse * p.scale[channel + c], p.bias[channel + c],
                                  p.y + start + i);
      p.finish(p.y + start + i, end - i);
    }
  }

  void run(Invocation& call) const {
    const std::size_t units = p.t.batch * p.groups, tasks = tasks_for(p.t.size(), call), n = group_size();
    if (units >= tasks) {  // whole groups: the second reading finds much of a group in the second cache
      return share(call, units, tasks, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t g = begin; g < end; ++g) write(g, 0, n, moments(g, 0, n));
      });
    }
    const std::size_t parts = (tasks + units - 1) / units;
    auto* partial = reinterpret_cast<Moments*>(call.scratch(units * parts * sizeof(Moments)));
    const auto range = [&](std::size_t i, auto body) {
      body(i / parts, n * (i % parts) / parts, n * (i % parts + 1) / parts);
    };
    call.parallel(units * parts, [&](std::size_t i) {
      range(i, [&](std::size_t g, std::size_t first, std::size_t last) { partial[i] = moments(g, first, last); });
    });
    call.parallel(units * parts, [&](std::size_t i) {
      range(i, [&](std::size_t g, std::size_t first, std::size_t last) {
        Moments all;
        for (std::size_t part = 0; part < parts; ++part) all.add(partial[g * parts + part]);
        write(g, first, last, all);
      });
    });
  }
};

/// Channels last: a group is a stripe of every row.
struct Rows {
  const Problem& p;

  /// Rows of a few channels are taken together to fill whole vectors: 8 of 6 channels are one of 48.
  std::size_t together() const {
    const std::size_t rows = kWholeVectors / std::gcd(p.t.channels, kWholeVectors);
    return p.t.channels < kWholeVectors && p.t.rows >= 8 * rows ? rows : 1;
  }
  std::size_t width() const { return together() * p.t.channels; }

  /// body(r, rows, width) for rows of about `floats` at a time, which lie from row r on as `rows` of `width` floats.
  template <class Body>
  void pieces(std::size_t first, std::size_t last, std::size_t floats, Body body) const {
    const std::size_t block = std::max<std::size_t>(floats / width(), 1);
    std::size_t r = first;
    for (std::size_t rows = 0; r + together() <= last; r += rows * together()) {
      rows = std::min(block, (last - r) / together());
      body(r, rows, width());
    }
    if (r < last) body(r, last - r, p.t.channels);
  }

  /// What is said of each channel, for as many channels as `width` floats have.
  void repeat(float* of_channels) const {
    for (std::size_t c = p.t.channels; c < width(); ++c) of_channels[c] = of_channels[c - p.t.channels];
  }
  void fold(float* sums, std::size_t width) const {
    for (std::size_t c = p.t.channels; c < width; ++c) sums[c % p.t.channels] += sums[c];
  }

  /// Adds the rows [first, last) of image n; `work` holds 3 * width() floats.
  void moments(std::size_t n, std::size_t first, std::size_t last, Moments* of_group, float* work) const {
    const std::size_t channels = p.t.channels, per = p.channels_per_group;
    float *sum = work, *mean = sum + width(), *squares = mean + width();
    std::fill_n(of_group, p.groups, Moments());
    const std::size_t worth = std::clamp(kWorthwhile * p.groups, kPiece, kLarge);
    pieces(first, last, worth, [&](std::size_t r, std::size_t rows, std::size_t wide) {
      const float* x = p.x + (n * p.t.rows + r) * channels;
      std::fill_n(sum, wide, 0.0f);
      std::fill_n(squares, wide, 0.0f);
      p.code.channels.add_rows(x, rows, wide, sum);
      fold(sum, wide);
      const auto count = static_cast<float>(rows * wide / p.groups);
      for (std::size_t c = 0; c < channels; c += per)
        std::fill_n(mean + c, per, p.code.channels.sum(sum + c, per) / count);
      repeat(mean);
      std::fill_n(sum, wide, 0.0f);
      p.code.norm.add_distances(x, rows, wide, mean, sum, squares);
      for (float* each : {sum, squares}) fold(each, wide);
      const auto of = [&](const float* sums, std::size_t g) { return p.code.channels.sum(sums + g * per, per); };
      for (std::size_t g = 0; g < p.groups; ++g)
        of_group[g].add(Moments::about(mean[g * per], count, of(sum, g), of(squares, g)));
    });
  }

  void write(std::size_t n, std::size_t first, std::size_t last, const Moments* of_group, std::size_t parts,
             float* work) const {
    const std::size_t channels = p.t.channels, per = p.channels_per_group;
    float *mean = work, *factor = mean + width(), *term = factor + width();
    for (std::size_t g = 0; g < p.groups; ++g) {
      Moments all;
      for (std::size_t part = 0; part < parts; ++part) all.add(of_group[part * p.groups + g]);
      const float inverse = p.factor(all);
      for (std::size_t c = g * per; c < (g + 1) * per; ++c) {
        mean[c] = static_cast<float>(all.mean);
        factor[c] = inverse * p.scale[c];
        term[c] = p.bias[c];
      }
    }
    for (float* each : {mean, factor, term}) repeat(each);
    pieces(first, last, kPiece, [&](std::size_t r, std::size_t rows, std::size_t wide) {
      const std::size_t at = (n * p.t.rows + r) * channels;
      p.code.norm.shift_and_scale_rows(p.x + at, rows, wide, mean, factor, term, p.y + at);
      p.finish(p.y + at, rows * wide);
    });
  }

  void run(Invocation& call) const {
    const std::size_t rows = p.t.rows, parts = std::min(tasks_for(rows * p.t.channels, call), rows);
    const std::size_t tasks = p.t.batch * parts;
    auto* of_group = reinterpret_cast<Moments*>(call.scratch(tasks * p.groups * sizeof(Moments)));
    auto* work = reinterpret_cast<float*>(call.scratch(tasks * 3 * width() * sizeof(float)));
    const auto collect = [&](std::size_t i) {
      moments(i / parts, rows * (i % parts) / parts, rows * (i % parts + 1) / parts, of_group + i * p.groups,
              work + i * 3 * width());
    };
    const auto finish = [&](std::size_t i) {
      write(i / parts, rows * (i % parts) / parts, rows * (i % parts + 1) / parts,
            of_group + i / parts * parts * p.groups, parts, work + i * 3 * width());
    };
    if (tasks == 1) {
      collect(0);
      return finish(0);
    }
    call.parallel(tasks, collect);
    call.parallel(tasks, finish);
  }
};

class GroupNorm : public Implementation {
 public:
  GroupNorm(const Call& call, const VectorCode& code)
      : code_(code),
        activation_(activation_of(call)),
        groups_(static_cast<std::size_t>(CallAttrs(call).integer("num_groups"))),
        epsilon_(CallAttrs(call).number("epsilon")),
        last_(CallAttrs(call).text("layout") == "NHWC") {}

  void run(Invocation& call) const override {
    const View x = call.input(0), scale = call.input(1), bias = call.input(2);
    const auto fail = [](const char* what) {
      throw Error(ErrorKind::invalid_input, std::string("GroupNorm: ") + what);
    };
    for (const View& view : {x, scale, bias}) {
      if (view.dtype != DType::f32) fail("an input is not float32");
    }
    if (x.dims.size() < 3) fail("x has less than 3 axes");
    const ChannelTensor t = channel_tensor(x.dims, last_);
    const Dims per_channel = {static_cast<std::int64_t>(t.channels)};
    if (!std::ranges::equal(scale.dims, per_channel) || !std::ranges::equal(bias.dims, per_channel))
      fail("scale or bias has not one entry per channel");
    if (t.channels % groups_ != 0) fail("the channels are no multiple of the groups");
    auto* y = static_cast<float*>(call.output(0, x.dims));
    if (t.size() == 0) return;
    const auto floats = [](const View& view) { return static_cast<const float*>(view.data); };
    const Problem problem{t, groups_,  t.channels / groups_, floats(x), floats(scale), floats(bias),
                          y, epsilon_, activation_,          code_};
    last_ ? Rows{problem}.run(call) : Planes{problem}.run(call);
  }

 private:
  const VectorCode& code_;
  ActivationSpec activation_;
  std::size_t groups_;
  float epsilon_;
  bool last_;
};

Verdict accepts(const Call& call, const Target&) {
  for (const Operand& operand : call.inputs) {
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
  }
  if (CallAttrs(call).integer("num_groups") < 1) return no("num_groups is not positive");
  try {
    activation_of(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  return yes();
}

double cost(const Call& call, const Target& target) {
  const double floats = call.in(0).shape.known_elements();
  return target.stream(8 * floats) + target.compute(activation_flops(activation_of(call).kind) * floats, 0.3);
}

}  // namespace

const Kernel group_norm = {
    .op = "GroupNorm",
    .name = "cpu.group_norm",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<GroupNorm>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
