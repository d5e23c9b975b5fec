// The products of a model whose rounding is compensated on samples.
#include "src/precision/roundings.h"

#include <algorithm>

#include "passes/graph/blocked_weights.h"
#include "src/core/bounded_pairs.h"
#include "src/precision/compensation.h"

namespace modelflow {
namespace {

/// The moments of a product are a matrix of that extent, and factoring it takes a third of its cube.
constexpr std::int64_t kMostDepth = 4096;

/// A product in both models.
struct Product {
  const Node *reference, *quantized;

  const Tensor& weights() const { return *weights_in(*reference)->constant(); }
  bool transposed() const { return reference->attrs.integer("trans_b") != 0; }
  std::int64_t depth() const { return weights().dims()[transposed()]; }
  std::int64_t columns() const { return weights().dims()[1 - transposed()]; }
  /// Of unsigned steps in blocks; 0 for int8 with a scale per column.
  int block_bits() const {
    if (computes(*quantized, Family::product, Form::i4)) return 4;
    return computes(*quantized, Family::product, Form::weight_only) ? static_cast<int>(quantized->attrs.integer("bits"))
                                                                    : 0;
  }
};

/// Whether both forms say what this can read: weights of as many elements, without zero points.
bool readable(const Product& product) {
  const Node &reference = *product.reference, &quantized = *product.quantized;
  if (!computes(reference, Family::product, Form::f32)) return false;
  const int bits = product.block_bits();
  if (bits == 0 && !computes(quantized, Family::product, Form::i8)) return false;
  if (reference.input(0)->is_initializer() || quantized.attrs.integer("has_zero_point")) return false;
  const Tensor *w = weights_in(reference)->constant(), *steps = weights_in(quantized)->constant();
  const Tensor* scales = weight_scales_in(quantized)->constant();
  if (!w || !steps || !scales || w->dtype() != DType::f32 || w->rank() != 2 || w->elements() == 0) return false;
  if (bits > 0) return steps->dtype() == DType::u8 && steps->elements() == w->elements() * bits / 8;
  return steps->dtype() == DType::i8 && steps->dims() == w->dims() && scales->elements() == product.columns();
}

/// [depth, columns], with the factor of the product.
std::vector<float> wanted(const Product& product) {
  const std::span<const float> from = product.weights().as<float>();
  const auto depth = static_cast<std::size_t>(product.depth()), columns = static_cast<std::size_t>(product.columns());
  const float factor = product.reference->attrs.number("scale");
  std::vector<float> weights(from.size());
  for (std::size_t k = 0; k < depth; ++k)
    for (std::size_t n = 0; n < columns; ++n)
      weights[k * columns + n] = from[product.transposed() ? n * depth + k : k * columns + n] * factor;
  return weights;
}

Tensor compensated(const Product& product, const Compensation& compensation) {
  const std::int64_t depth = product.depth(), columns = product.columns();
  const std::vector<double> kept = weight_scales_in(*product.quantized)->constant()->to_doubles();
  const std::vector<float> scales(kept.begin(), kept.end());
  const passes::Blocks blocks = {.block = depth * columns / static_cast<std::int64_t>(scales.size()),
                                 .bits = product.block_bits()};
  const bool in_blocks = blocks.bits > 0;
  const auto bounded = [&] {  // what was bounded stays so
    const auto given = weights_in(*product.quantized)->constant()->as<std::int8_t>();
    return bounded_pairs(given, static_cast<std::size_t>(columns), product.transposed());
  };
  const Grid grid{.scales = scales,
                  .block = static_cast<std::size_t>(blocks.block),
                  .least = in_blocks ? -blocks.middle() : -127,
                  .most = in_blocks ? blocks.middle() - 1 : 127,
                  .bounded_pairs = !in_blocks && bounded()};
  const std::vector<std::int8_t> steps = compensation.steps(wanted(product), grid);
  const auto at = [&](std::int64_t n, std::int64_t k) { return steps[static_cast<std::size_t>(k * columns + n)]; };
  if (in_blocks)
    return passes::packed_steps(columns, depth, blocks, [&](auto n, auto k) { return at(n, k) + blocks.middle(); });
  if (!product.transposed()) return Tensor::of<std::int8_t>({depth, columns}, std::span<const std::int8_t>(steps));
  return Tensor::make(DType::i8, {columns, depth}, [&](std::byte* out) {
    for (std::int64_t n = 0; n < columns; ++n)
      for (std::int64_t k = 0; k < depth; ++k) *out++ = static_cast<std::byte>(at(n, k));
  });
}

Rounding rounding(const Product& product, const std::optional<Compensation>& compensation, const Moments& moments) {
  if (moments.empty()) return {.why_not = "no sample gave finite numbers in front of it"};
  if (!compensation) return {.why_not = "what it reads was always 0"};
  return {.steps = compensated(product, *compensation)};
}

}  // namespace

Roundings roundings(const Sessions& sessions, const Model& reference, const Model& runnable, const Model& quantized,
                    const CalibrationData& samples, const SessionOptions& session) {
  std::map<std::string, const Node*> floats;
  for (const auto& node : reference.graph().nodes()) floats.emplace(node->name, node.get());
  std::multimap<std::string, Product> readers;
  std::map<std::string, std::int64_t> depths;
  Roundings found;
  for (const auto& node : quantized.graph().nodes()) {
    const auto before = floats.find(node->name);
    if (before == floats.end()) continue;
    const Product product{before->second, node.get()};
    if (!readable(product)) continue;
    if (product.depth() > kMostDepth) {
      found[node->name].why_not = "a depth above " + std::to_string(kMostDepth) + " would take too long";
      continue;
    }
    const std::string& x = product.reference->input(0)->name();
    readers.emplace(x, product);
    depths.emplace(x, product.depth());
  }
  see_moments(sessions, runnable, depths, samples, session, [&](const std::string& value, const Moments& moments) {
    std::optional<Compensation> compensation;
    if (!moments.empty()) compensation = Compensation::of(moments, static_cast<std::size_t>(depths.at(value)));
    const auto [first, last] = readers.equal_range(value);
    std::for_each(first, last, [&](const auto& reader) {
      found[reader.second.quantized->name] = rounding(reader.second, compensation, moments);
    });
  });
  return found;
}

}  // namespace modelflow
