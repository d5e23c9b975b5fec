// The forms of Winograd's method as a table, with the transformation of weights and an estimate of the work.
#include "backends/cpu/conv/winograd_method.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/conv/problem.h"
#include "backends/cpu/frame/weight_cache.h"
#include "src/core/unknown_extents.h"

namespace modelflow::cpu {
namespace {

/// The transformation of the taps of one axis, [frequency, tap].
constexpr double kOne[] = {1};
constexpr double kTwo[] = {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1};
constexpr double kFour[] = {1. / 4,  0,       0,      -1. / 6, -1. / 6,  -1. / 6, -1. / 6, 1. / 6, -1. / 6,
                            1. / 24, 1. / 12, 1. / 6, 1. / 24, -1. / 12, 1. / 6,  0,       0,      1};
constexpr double kStrided[] = {1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0};

constexpr WinogradMethod kMethods[] = {
    {WinogradForm::two, {2, 2, 4, 4}, {3, 3}, {1, 1}, kTwo, kTwo, 1, "m2"},
    {WinogradForm::four, {4, 4, 6, 6}, {3, 3}, {1, 1}, kFour, kFour, 1, "m4"},
    {WinogradForm::strided, {2, 2, 5, 5}, {3, 3}, {2, 2}, kStrided, kStrided, 0.55, "m2s2"},
    {WinogradForm::strided_line, {1, 2, 1, 5}, {1, 3}, {1, 2}, kOne, kStrided, 0.55, "m1x2s2"},
};

/// The weights [M, C, taps, window] of each group.
struct Weights {
  std::int64_t groups, filters, channels, taps;

  explicit Weights(const Call& call) : groups(CallAttrs(call).integer("group")) {
    const Dims& w = call.in(1).constant->dims();
    filters = w[0] / groups, channels = w[1], taps = w.size() > 4 ? w[2] : 1;
  }
  std::int64_t depth() const { return taps * channels; }
};

/// One frequency of them as [taps, C, M].
void frequency(const float* w, const Weights& of, std::span<const double> factors, float* to) {
  for (std::int64_t f = 0; f < of.filters; ++f) {
    for (std::int64_t c = 0; c < of.channels; ++c) {
      for (std::int64_t tap = 0; tap < of.taps; ++tap, w += factors.size()) {
        double sum = 0;
        for (std::size_t i = 0; i < factors.size(); ++i) sum += factors[i] * static_cast<double>(w[i]);
        to[(tap * of.channels + c) * of.filters + f] = static_cast<float>(sum);
      }
    }
  }
}

bool fits(const WinogradMethod& method, const ops::ConvAttrs& conv) {
  const std::size_t rank = conv.rank();
  if (rank > 2 && (conv.strides[0] != 1 || conv.dilations[0] != 1 || conv.kernel[0] > kMostWinogradTaps)) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    if (i + rank < 2) {
      if (method.kernel[i] != 1) return false;
      continue;
    }
    const std::size_t axis = i + rank - 2;
    if (conv.kernel[axis] != method.kernel[i] || conv.strides[axis] != method.strides[i] || conv.dilations[axis] != 1)
      return false;
  }
  return true;
}

/// Taps along the first of three axes that find more than padding: of causal convolutions of one frame, the last.
std::int64_t taps_of(const Call& call) {
  const ops::ConvAttrs conv(call);
  if (conv.rank() < 3) return 1;
  const Shape& x = call.in(0).shape;
  if (!x.has_rank() || !x[1].known()) return conv.kernel[0];
  const std::int64_t depth = x[1].value();
  return taps_inside(conv.pads[0], conv.kernel[0], depth, 0, std::max<std::int64_t>(conv.extent(0, depth), 1)).count();
}

/// Transformed weights are kept in memory, 1.8 times as large as the plain ones with F(2, 3), 2.8 times with stride 2
/// and four times with F(4, 3). Those that more than double may come to so much: 512 x 512 of them in F(4, 3), whose
/// results take two thirds of the time.
constexpr double kMostBytes = 40e6;

}  // namespace

bool has_winograd_method(const Call& call) {
  const ops::ConvAttrs conv(call);
  return std::ranges::any_of(kMethods, [&](const WinogradMethod& method) { return fits(method, conv); });
}

namespace {

/// Results of one filter: images with their planes, rows and columns.
struct Results {
  double images, rows, columns;

  explicit Results(const Call& call) {
    const Shape& y = call.outputs.at(0).shape;
    const std::size_t rank = call.in(1).constant->rank() - 2;
    const auto extent = [&](std::size_t axis, std::int64_t otherwise) {
      return static_cast<double>(y.has_rank() && y[axis].known() ? y[axis].value() : otherwise);
    };
    images = extent(0, typical::kBatch) * (rank > 2 ? extent(1, typical::kMap) : 1);
    rows = rank > 1 ? extent(rank - 1, typical::kMap) : 1;
    columns = extent(rank, rank > 1 ? typical::kMap : typical::kMap * typical::kMap);
  }
  double tiles(const WinogradTile& tile) const {
    return images * std::ceil(rows / static_cast<double>(tile.high)) *
           std::ceil(columns / static_cast<double>(tile.wide));
  }
};

}  // namespace

/// Fitted to layers of ResNet-50 on Cascade Lake and to a hundred of ResNet, HRNet, UNets, RepVGG, YOLO, NFNet and
/// Next-ViT on Zen 5, both widths. A byte of weights from memory or L3 takes the time of about 5 multiplications with
/// additions, as far as it is not hidden behind them; a result of a product that of 6, to be written and read. A
/// transform moves its numbers through L1 and L2, which wider vectors make little faster, and the pixels of a group lie
/// apart.
WinogradWork winograd_work(const Call& call, const WinogradMethod* method, std::size_t lanes) {
  const Weights w(call);
  const Results y(call);
  const auto groups = static_cast<double>(w.groups), filters = static_cast<double>(w.filters),
             channels = static_cast<double>(w.channels);
  const auto width = static_cast<double>(lanes), depth = static_cast<double>(taps_of(call)) * channels;
  if (!method) {
    const double window =
        static_cast<double>(call.in(1).constant->elements()) / (groups * filters * static_cast<double>(w.depth()));
    const double products = groups * window * filters * depth;
    return {products * y.images * y.rows * y.columns, 4 * products, 0};
  }
  const auto in_vectors = [&](double n) { return std::ceil(n / width) * width; };
  const double tiles = groups * y.tiles(method->tile);
  const auto n = static_cast<double>(method->tile.frequencies());
  const double transform = (w.groups > 1 ? 1.25 : 1) * method->transform * (6 + width / 2);
  return {n * tiles * in_vectors(filters) * (depth + 6), 4 * groups * n * filters * depth,
          tiles * (n * (in_vectors(filters) + in_vectors(channels)) * transform + 190 * width)};
}

const WinogradMethod* winograd_method(const Call& call, std::size_t lanes) {
  const ops::ConvAttrs conv(call);
  const Weights w(call);
  const WinogradMethod* best = nullptr;
  double least = winograd_work(call, nullptr, lanes).total();
  for (const WinogradMethod& method : kMethods) {
    if (!fits(method, conv)) continue;
    const WinogradWork work = winograd_work(call, &method, lanes);
    const bool grow = method.tile.frequencies() > 2 * method.kernel[0] * method.kernel[1];
    const double bytes = 4 * static_cast<double>(method.tile.frequencies() * w.groups * w.filters * w.depth());
    if (work.total() >= least || (grow && bytes > kMostBytes)) continue;
    least = work.total();
    best = &method;
  }
  return best;
}

std::shared_ptr<const std::byte> winograd_weights(const Call& call, const WinogradMethod& method,
                                                  const WinogradCode& code) {
  const Weights of(call);
  const Tensor& w = *call.in(1).constant;
  const auto filters = static_cast<std::size_t>(of.filters), depth = static_cast<std::size_t>(of.depth());
  const F32Code& product = code.product;
  const std::size_t floats = product.packed_floats(depth, filters);
  const auto n = static_cast<std::size_t>(method.tile.frequencies());
  const std::string layout =
      std::string(code.layout) + " " + std::string(method.name) + " in " + std::to_string(of.groups);
  return packed_weights(
      w, layout, static_cast<std::size_t>(of.groups) * n * floats * sizeof(float), [&](std::byte* to) {
        const auto high = static_cast<std::size_t>(method.kernel[0]), wide = static_cast<std::size_t>(method.kernel[1]);
        const auto columns = static_cast<std::size_t>(method.tile.columns);
        std::vector<float> plain(filters * depth);
        std::vector<double> factors(high * wide);
        const float* from = w.as<float>().data();
        for (std::int64_t group = 0; group < of.groups; ++group, from += plain.size() * factors.size()) {
          for (std::size_t f = 0; f < n; ++f, to += floats * sizeof(float)) {
            for (std::size_t i = 0; i < factors.size(); ++i)
              factors[i] = method.down[f / columns * high + i / wide] * method.along[f % columns * wide + i % wide];
            frequency(from, of, factors, plain.data());
            product.pack_b(plain.data(), filters, false, depth, filters, 0, product.panels(filters),
                           reinterpret_cast<float*>(to));
          }
        }
      });
}

}  // namespace modelflow::cpu
