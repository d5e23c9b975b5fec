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
    {WinogradForm::two, {2, 2, 4, 4}, {3, 3}, {1, 1}, 1, "m2"},
    {WinogradForm::four, {4, 4, 6, 6}, {3, 3}, {1, 1}, 1, "m4"},
    {WinogradForm::strided, {2, 2, 5, 5}, {3, 3}, {2, 2}, 0.55, "m2s2"},
    {WinogradForm::strided_line, {1, 2, 1, 5}, {1, 3}, {1, 2}, 0.55, "m1x2s2"},
};

const double* along_rows(WinogradForm form) {
  switch (form) {
    case WinogradForm::two:
      return kTwo;
    case WinogradForm::four:
      return kFour;
    case WinogradForm::strided:
    case WinogradForm::strided_line:
      return kStrided;
  }
  return nullptr;
}
const double* down_columns(WinogradForm form) { return form == WinogradForm::strided_line ? kOne : along_rows(form); }

/// The weights [M, C, taps, window].
struct Weights {
  std::int64_t filters, channels, taps;

  explicit Weights(const Tensor& w)
      : filters(w.dims()[0]), channels(w.dims()[1]), taps(w.rank() > 4 ? w.dims()[2] : 1) {}
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
/// and four times with F(4, 3), which more than 512 x 512 of them may not become: results take two thirds of the time.
constexpr double kMostBytes = 40e6;

}  // namespace

bool has_winograd_method(const Call& call) {
  const ops::ConvAttrs conv(call);
  return std::ranges::any_of(kMethods, [&](const WinogradMethod& method) { return fits(method, conv); });
}

/// A byte of weights from memory or L3 takes the time of about 4 multiplications with additions, as far as it is not
/// hidden behind them (fitted to the layers of ResNet-50 on Cascade Lake). A transform moves its numbers through L1 and
/// L2, which wider vectors make little faster; with these weights all of 70 layers of ResNet, HRNet, UNets, RepVGG and
/// YOLO go the faster way but one, which loses 6 % (Zen 5, both widths).
WinogradWork winograd_work(const Call& call, const WinogradMethod* method, std::size_t lanes) {
  const Weights w(*call.in(1).constant);
  const Shape& y = call.outputs.at(0).shape;
  const std::size_t rank = call.in(1).constant->rank() - 2;
  const auto extent = [&](std::size_t axis, std::int64_t otherwise) {
    return static_cast<double>(y.has_rank() && y[axis].known() ? y[axis].value() : otherwise);
  };
  const double planes = rank > 2 ? extent(1, typical::kMap) : 1, batch = extent(0, typical::kBatch) * planes;
  const double high = rank > 1 ? extent(rank - 1, typical::kMap) : 1,
               wide = extent(rank, typical::kMap * (rank > 1 ? 1 : typical::kMap));
  const auto filters = static_cast<double>(w.filters), channels = static_cast<double>(w.channels);
  const auto in_vectors = [width = static_cast<double>(lanes)](double n) { return std::ceil(n / width) * width; };
  const auto depth = static_cast<double>(taps_of(call)) * channels;
  if (!method) {
    const double window =
        static_cast<double>(call.in(1).constant->elements()) / (filters * static_cast<double>(w.depth()));
    return {window * batch * high * wide * filters * depth, 4 * window * filters * depth, 0};
  }
  const auto& tile = method->tile;
  const double tiles =
      batch * std::ceil(high / static_cast<double>(tile.high)) * std::ceil(wide / static_cast<double>(tile.wide));
  const auto n = static_cast<double>(tile.frequencies());
  const double transform = method->transform * (6 + static_cast<double>(lanes) / 2);
  return {n * tiles * in_vectors(filters) * depth, 4 * n * filters * depth,
          n * tiles * (in_vectors(filters) + in_vectors(channels)) * transform};
}

const WinogradMethod* winograd_method(const Call& call, std::size_t lanes) {
  const ops::ConvAttrs conv(call);
  const Weights w(*call.in(1).constant);
  const WinogradMethod* best = nullptr;
  double least = winograd_work(call, nullptr, lanes).total();
  for (const WinogradMethod& method : kMethods) {
    if (!fits(method, conv)) continue;
    const WinogradWork work = winograd_work(call, &method, lanes);
    const bool grow = method.tile.frequencies() > 2 * method.kernel[0] * method.kernel[1];
    if (work.total() >= least || (grow && work.weight_bytes > kMostBytes)) continue;
    least = work.total();
    best = &method;
  }
  return best;
}

std::shared_ptr<const std::byte> winograd_weights(const Tensor& w, const WinogradMethod& method,
                                                  const WinogradCode& code) {
  const Weights of(w);
  const auto filters = static_cast<std::size_t>(of.filters), depth = static_cast<std::size_t>(of.depth());
  const F32Code& product = code.product;
  const std::size_t floats = product.packed_floats(depth, filters);
  const auto n = static_cast<std::size_t>(method.tile.frequencies());
  const std::string layout = std::string(code.layout) + " " + std::string(method.name);
  return packed_weights(w, layout, n * floats * sizeof(float), [&](std::byte* to) {
    const double *down = down_columns(method.form), *along = along_rows(method.form);
    const auto high = static_cast<std::size_t>(method.kernel[0]), wide = static_cast<std::size_t>(method.kernel[1]);
    const auto columns = static_cast<std::size_t>(method.tile.columns);
    std::vector<float> plain(filters * depth);
    std::vector<double> factors(high * wide);
    for (std::size_t f = 0; f < n; ++f) {
      for (std::size_t i = 0; i < factors.size(); ++i)
        factors[i] = down[f / columns * high + i / wide] * along[f % columns * wide + i % wide];
      frequency(w.as<float>().data(), of, factors, plain.data());
      product.pack_b(plain.data(), filters, false, depth, filters, 0, product.panels(filters),
                     reinterpret_cast<float*>(to) + f * floats);
    }
  });
}

}  // namespace modelflow::cpu
