#include "src/calibrate/bias_shifts.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace modelflow {
namespace {

constexpr std::size_t kSamples = 8;

/// The scale that x has in front of an op; 0: rows have scales of their own, which this knows nothing about.
struct Grid {
  float scale = 0, zero_point = 0;
  float rounded(float x) const {
    if (scale == 0) return x;
    return (std::clamp(std::nearbyint(x / scale) + zero_point, 0.0F, 255.0F) - zero_point) * scale;
  }
};

/// Sums over all outputs of what each weight is multiplied by: [channel of x, tap], as it is and rounded.
struct Sums {
  std::vector<double> exact, rounded;
  double outputs = 0;

  void fit(std::size_t count) {
    if (exact.empty()) exact.assign(count, 0), rounded.assign(count, 0);
  }
};

/// Where the taps of a window lie along one axis.
struct Window {
  std::int64_t kernel = 1, stride = 1, dilation = 1, before = 0, outputs = 0;
  /// The places that the tap touches: first, first + stride, ...; how many.
  std::pair<std::int64_t, std::int64_t> places(std::int64_t tap, std::int64_t extent) const {
    const std::int64_t offset = tap * dilation - before;
    const std::int64_t skipped = offset < 0 ? (-offset + stride - 1) / stride : 0;
    const std::int64_t first = offset + skipped * stride;
    if (first >= extent) return {0, 0};
    return {first, std::min(outputs - skipped, (extent - first + stride - 1) / stride)};
  }
};

/// p[0] + p[stride] + ... over `count` places. Sums over a constant number of lanes are what compilers vectorise.
double sum_of(const float* p, std::int64_t count, std::int64_t stride) {
  constexpr std::int64_t kLanes = 16;
  std::array<float, kLanes> lanes{};
  std::int64_t i = 0;
  if (stride == 1)
    for (; i + kLanes <= count; i += kLanes)
      for (std::int64_t j = 0; j < kLanes; ++j) lanes[static_cast<std::size_t>(j)] += p[i + j];
  double sum = 0;
  for (; i < count; ++i) sum += p[i * stride];
  for (const float lane : lanes) sum += lane;
  return sum;
}

std::int64_t at(const Ints& values, std::size_t i, std::int64_t otherwise) {
  return i < values.size() ? values[i] : otherwise;
}

/// The windows over rows and columns; a sequence is one row.
std::pair<Window, Window> windows(const Node& conv, const Tensor& w, std::int64_t height, std::int64_t width) {
  const std::size_t rank = w.rank() - 2;
  const Ints strides = conv.attrs.ints("strides"), dilations = conv.attrs.ints("dilations"),
             pads = conv.attrs.ints("pads");
  const auto along = [&](std::size_t axis, std::int64_t extent) {
    Window window{.kernel = w.dims()[2 + axis],
                  .stride = at(strides, axis, 1),
                  .dilation = at(dilations, axis, 1),
                  .before = at(pads, axis, 0)};
    const std::int64_t padded = extent + window.before + at(pads, axis + rank, 0);
    window.outputs =
        std::max<std::int64_t>(0, (padded - window.dilation * (window.kernel - 1) - 1) / window.stride + 1);
    return window;
  };
  return rank == 1 ? std::pair(Window{.outputs = 1}, along(0, width)) : std::pair(along(0, height), along(1, width));
}

bool is_product(const Node& node) { return computes(node, Family::product); }

/// A convolution, transposed or not, or a product in both models.
class Op {
 public:
  Op(const Node& reference, const Node& quantized) : node_(reference), quantized_(quantized) {
    const char* x = is_product(reference) ? "a" : "x";
    grid_.scale = quantized.attrs.number(std::string(x) + "_scale", 0);
    grid_.zero_point = static_cast<float>(quantized.attrs.integer(std::string(x) + "_zero_point"));
  }

  void see(const Tensor& x) {
    if (x.dtype() != DType::f32 || x.elements() == 0) return;
    is_product(node_) ? see_rows(x) : see_image(x);
  }

  std::vector<float> shift() const {
    if (sums_.outputs == 0) return {};
    if (is_product(node_)) return product_shift();
    return node_.is("ConvTranspose") ? transposed_shift() : conv_shift();
  }

 private:
  const Tensor& weights() const { return *node_.input(1)->constant(); }

  void see_image(const Tensor& x) {
    const Tensor& w = weights();
    const std::size_t rank = x.rank();
    const std::int64_t height = rank == 4 ? x.dims()[2] : 1, width = x.dims()[rank - 1];
    // Windows of a transposed one lie side by side: every weight meets every pixel of its channel once.
    const auto [rows, columns] = node_.is("ConvTranspose")
                                     ? std::pair(Window{.outputs = height}, Window{.outputs = width})
                                     : windows(node_, w, height, width);
    const std::int64_t channels = x.dims()[1], taps = rows.kernel * columns.kernel;
    sums_.fit(static_cast<std::size_t>(channels * taps));
    const float* image = x.as<float>().data();
    std::vector<float> rounded(static_cast<std::size_t>(height * width));
    for (std::int64_t i = 0; i < x.dims()[0] * channels; ++i, image += height * width) {
      std::transform(image, image + height * width, rounded.begin(), [&](float v) { return grid_.rounded(v); });
      const auto place = static_cast<std::size_t>(i % channels * taps);
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const auto down = rows.places(tap / columns.kernel, height),
                   across = columns.places(tap % columns.kernel, width);
        for (std::int64_t r = 0; r < down.second; ++r) {
          const std::int64_t first = (down.first + r * rows.stride) * width + across.first;
          sums_.exact[place + static_cast<std::size_t>(tap)] += sum_of(image + first, across.second, columns.stride);
          sums_.rounded[place + static_cast<std::size_t>(tap)] +=
              sum_of(rounded.data() + first, across.second, columns.stride);
        }
      }
    }
    sums_.outputs += static_cast<double>(x.dims()[0] * rows.outputs * columns.outputs);
  }

  void see_rows(const Tensor& a) {
    const auto depth = static_cast<std::size_t>(a.dims().back());
    sums_.fit(depth);
    const std::span<const float> values = a.as<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums_.exact[i % depth] += values[i];
      sums_.rounded[i % depth] += grid_.rounded(values[i]);
    }
    sums_.outputs += static_cast<double>(values.size() / depth);
  }

  std::vector<float> conv_shift() const {
    const std::span<const float> w = weights().as<float>(), scales = quantized_.input(2)->constant()->as<float>();
    const std::span<const std::int8_t> steps = quantized_.input(1)->constant()->as<std::int8_t>();
    const auto outputs = static_cast<std::size_t>(weights().dims()[0]);
    const auto groups = static_cast<std::size_t>(node_.attrs.integer("group", 1));
    const std::size_t each = w.size() / outputs;
    std::vector<float> shift(outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      const std::size_t from = o / (outputs / groups) * each;
      double sum = 0;
      for (std::size_t i = 0; i < each; ++i)
        sum += w[o * each + i] * sums_.exact[from + i] -
               static_cast<double>(steps[o * each + i]) * scales[o] * sums_.rounded[from + i];
      shift[o] = static_cast<float>(sum / sums_.outputs);
    }
    return shift;
  }

  /// Of weights [channels, outputs, taps ...].
  std::vector<float> transposed_shift() const {
    const std::span<const float> w = weights().as<float>(), scales = quantized_.input(2)->constant()->as<float>();
    const std::span<const std::int8_t> steps = quantized_.input(1)->constant()->as<std::int8_t>();
    const std::size_t channels = sums_.exact.size(), outputs = scales.size(), taps = w.size() / (channels * outputs);
    std::vector<double> sums(outputs);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const std::size_t c = i / (outputs * taps), o = i / taps % outputs;
      sums[o] += w[i] * sums_.exact[c] - static_cast<double>(steps[i]) * scales[o] * sums_.rounded[c];
    }
    std::vector<float> shift;
    for (const double sum : sums)
      shift.push_back(static_cast<float>(sum / (sums_.outputs * static_cast<double>(taps))));
    return shift;
  }

  std::vector<float> product_shift() const {
    const std::span<const float> w = weights().as<float>(), scales = quantized_.input(2)->constant()->as<float>();
    const std::span<const std::int8_t> steps = quantized_.input(1)->constant()->as<std::int8_t>();
    const bool swapped = node_.attrs.integer("trans_b") != 0;
    const float factor = node_.attrs.number("scale", 1);
    const std::size_t depth = sums_.exact.size(), outputs = w.size() / depth;
    std::vector<float> shift(outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      double sum = 0;
      for (std::size_t k = 0; k < depth; ++k) {
        const std::size_t i = swapped ? o * depth + k : k * outputs + o;
        sum += static_cast<double>(w[i]) * factor * sums_.exact[k] -
               static_cast<double>(steps[i]) * scales[o] * sums_.rounded[k];
      }
      shift[o] = static_cast<float>(sum / sums_.outputs);
    }
    return shift;
  }

  const Node &node_, &quantized_;
  Grid grid_;
  Sums sums_;
};

/// Whether both forms say what this can read: weights of as many elements, signed and without zero points.
bool readable(const Node& reference, const Node& quantized) {
  const bool transposed = reference.is("ConvTranspose") && computes(quantized, Family::transposed_convolution);
  const bool conv = transposed || (computes(reference, Family::convolution, Form::f32) &&
                                   computes(quantized, Family::convolution, Form::i8));
  const bool product =
      computes(reference, Family::product, Form::f32) && computes(quantized, Family::product, Form::i8);
  if (!conv && !product) return false;
  if (!reference.input(0)->is_graph_input() && !reference.input(0)->producer()) return false;
  const Tensor *w = reference.input(1)->constant(), *steps = quantized.input(1)->constant();
  const Tensor* scales = quantized.input(2)->constant();
  if (!w || !steps || !scales || w->dtype() != DType::f32 || steps->dtype() != DType::i8) return false;
  if (w->dims() != steps->dims() || w->elements() == 0 || quantized.attrs.integer("has_zero_point")) return false;
  const std::size_t outputs = !transposed && (conv || reference.attrs.integer("trans_b")) ? 0 : 1;
  if (scales->elements() != w->dims()[outputs]) return false;
  return conv ? w->rank() == 3 || w->rank() == 4 : w->rank() == 2 && quantized.attrs.integer("has_bias") != 0;
}

}  // namespace

BiasShifts bias_shifts(Runtime& runtime, const Model& reference, const Model& runnable, const Model& quantized,
                       const CalibrationData& samples, const SessionOptions& session) {
  std::map<std::string, const Node*> floats;
  for (const auto& node : reference.graph().nodes()) floats.emplace(node->name, node.get());
  std::map<std::string, Op> ops;
  std::multimap<std::string, Op*> readers;
  std::vector<std::string> values;
  for (const auto& node : quantized.graph().nodes()) {
    const auto found = floats.find(node->name);
    const Node* reference = found == floats.end() ? nullptr : found->second;
    // A transposed convolution goes by the name of the activation that it took in.
    if (reference && computes(*node, Family::transposed_convolution) && !reference->is("ConvTranspose"))
      reference = reference->inputs().empty() ? nullptr : reference->input(0)->producer();
    if (!reference || !readable(*reference, *node)) continue;
    Op& op = ops.try_emplace(node->name, *reference, *node).first->second;
    const std::string& x = reference->input(0)->name();
    if (!readers.contains(x)) values.push_back(x);
    readers.emplace(x, &op);
  }
  watch(runtime, runnable, values, samples, kSamples, session, [&](const std::string& name, const Tensor& result) {
    const auto [first, last] = readers.equal_range(name);
    std::for_each(first, last, [&](const auto& reader) { reader.second->see(result); });
  });
  BiasShifts shifts;
  for (const auto& [name, op] : ops)
    if (std::vector<float> shift = op.shift(); !shift.empty()) shifts.emplace(name, std::move(shift));
  return shifts;
}

}  // namespace modelflow
