// What rounding takes from the mean of each output channel, summed over samples.
#include "src/precision/bias_shifts.h"

#include <algorithm>
#include <cmath>

#include "src/precision/eigen.h"

namespace modelflow {
namespace {

constexpr std::size_t kSamples = 8;

using Eigen::Index;
template <class T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

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
  Eigen::VectorXd exact, rounded;
  double outputs = 0;

  void fit(Index count) {
    if (exact.size() == 0) exact = rounded = Eigen::VectorXd::Zero(count);
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
    if (first >= extent || skipped >= outputs) return {0, 0};
    return {first, std::min(outputs - skipped, (extent - first + stride - 1) / stride)};
  }
};

/// p[0] + p[stride] + ... over `count` places.
double sum_of(const float* p, Index count, Index stride) {
  return Eigen::Map<const Eigen::VectorXf, 0, Eigen::InnerStride<>>(p, count, Eigen::InnerStride<>(stride))
      .cast<double>()
      .sum();
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
    std::vector<float> shift;
    if (sums_.outputs == 0) return shift;
    const std::span<const float> scales = weight_scales_in(quantized_)->constant()->as<float>();
    for (std::size_t o = 0; o < scales.size(); ++o) {
      const Place at = place(static_cast<Index>(o), static_cast<Index>(scales.size()));
      const double exact = times(weights().as<float>(), at, sums_.exact) * factor();
      const double rounded =
          times(weights_in(quantized_)->constant()->as<std::int8_t>(), at, sums_.rounded) * scales[o];
      shift.push_back(static_cast<float>((exact - rounded) / (sums_.outputs * static_cast<double>(at.together))));
    }
    return shift;
  }

 private:
  /// Where the weights of one output lie: [each, together], rows `stride` apart, those of a row meeting the same sum.
  struct Place {
    Index first, each, together, stride, sums;
  };

  const Tensor& weights() const { return *weights_in(node_)->constant(); }
  double factor() const { return is_product(node_) ? node_.attrs.number("scale") : 1; }

  Place place(Index o, Index outputs) const {
    const Index each = static_cast<Index>(weights().elements()) / outputs;
    if (is_product(node_) && node_.attrs.integer("trans_b") == 0) return {o, each, 1, outputs, 0};
    if (node_.is("ConvTranspose")) {  // [channels, outputs, taps ...]
      const Index channels = sums_.exact.size(), taps = each / channels;
      return {o * taps, channels, taps, outputs * taps, 0};
    }
    const Index groups = node_.attrs.integer("group", 1);
    return {o * each, each, 1, 1, is_product(node_) ? 0 : o / (outputs / groups) * each};
  }

  template <class T>
  static double times(std::span<const T> weights, const Place& at, const Eigen::VectorXd& sums) {
    const Eigen::Map<const Rows<T>, 0, Eigen::OuterStride<>> w(weights.data() + at.first, at.each, at.together,
                                                               Eigen::OuterStride<>(at.stride));
    return w.template cast<double>().rowwise().sum().dot(sums.segment(at.sums, at.each));
  }

  void see_image(const Tensor& x) {
    const Tensor& w = weights();
    const std::size_t rank = x.rank();
    const std::int64_t height = rank == 4 ? x.dims()[2] : 1, width = x.dims()[rank - 1];
    // Windows of a transposed one lie side by side: every weight meets every pixel of its channel once.
    const auto [rows, columns] = node_.is("ConvTranspose")
                                     ? std::pair(Window{.outputs = height}, Window{.outputs = width})
                                     : windows(node_, w, height, width);
    const std::int64_t channels = x.dims()[1], taps = rows.kernel * columns.kernel;
    sums_.fit(channels * taps);
    const float* image = x.as<float>().data();
    std::vector<float> rounded(static_cast<std::size_t>(height * width));
    for (std::int64_t i = 0; i < x.dims()[0] * channels; ++i, image += height * width) {
      std::transform(image, image + height * width, rounded.begin(), [&](float v) { return grid_.rounded(v); });
      const Index place = i % channels * taps;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const auto down = rows.places(tap / columns.kernel, height),
                   across = columns.places(tap % columns.kernel, width);
        for (std::int64_t r = 0; r < down.second; ++r) {
          const std::int64_t first = (down.first + r * rows.stride) * width + across.first;
          sums_.exact[place + tap] += sum_of(image + first, across.second, columns.stride);
          sums_.rounded[place + tap] += sum_of(rounded.data() + first, across.second, columns.stride);
        }
      }
    }
    sums_.outputs += static_cast<double>(x.dims()[0] * rows.outputs * columns.outputs);
  }

  void see_rows(const Tensor& a) {
    const Index depth = a.dims().back();
    sums_.fit(depth);
    const Eigen::Map<const Rows<float>> rows(a.as<float>().data(), a.elements() / depth, depth);
    for (Index r = 0; r < rows.rows(); ++r) {
      const auto row = rows.row(r).transpose();
      sums_.exact += row.cast<double>();
      sums_.rounded += row.unaryExpr([&](float v) { return grid_.rounded(v); }).cast<double>();
    }
    sums_.outputs += static_cast<double>(rows.rows());
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
  const Tensor *w = weights_in(reference)->constant(), *steps = weights_in(quantized)->constant();
  const Tensor* scales = weight_scales_in(quantized)->constant();
  if (!w || !steps || !scales || w->dtype() != DType::f32 || steps->dtype() != DType::i8) return false;
  if (w->dims() != steps->dims() || w->elements() == 0 || quantized.attrs.integer("has_zero_point")) return false;
  const std::size_t outputs = !transposed && (conv || reference.attrs.integer("trans_b")) ? 0 : 1;
  if (scales->elements() != w->dims()[outputs]) return false;
  return conv ? w->rank() == 3 || w->rank() == 4 : w->rank() == 2 && quantized.attrs.integer("has_bias") != 0;
}

}  // namespace

BiasShifts bias_shifts(const Sessions& sessions, const Model& reference, const Model& runnable, const Model& quantized,
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
  see_values(sessions, runnable, values, samples, kSamples, session,
             [&](const std::string& name, const Tensor& result) {
               const auto [first, last] = readers.equal_range(name);
               std::for_each(first, last, [&](const auto& reader) { reader.second->see(result); });
             });
  BiasShifts shifts;
  for (const auto& [name, op] : ops)
    if (std::vector<float> shift = op.shift(); !shift.empty()) shifts.emplace(name, std::move(shift));
  return shifts;
}

}  // namespace modelflow
