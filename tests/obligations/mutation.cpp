// Changes that make mutants of a model.
#include "tests/obligations/mutation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "modelflow/error.h"

namespace modelflow::obligations {
namespace {

template <class T>
void put(std::byte* out, std::size_t i, double value) {
  T element;
  if constexpr (std::is_integral_v<T>) {
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = static_cast<double>(std::numeric_limits<T>::max());
    if (!(value > low))
      element = std::isnan(value) ? T{0} : std::numeric_limits<T>::min();
    else
      element = value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value);
  } else {
    element = static_cast<T>(value);
  }
  std::memcpy(out + i * sizeof(T), &element, sizeof(T));
}

/// To the nearest value that a float of 16 bits has.
std::uint16_t narrow(double value, int exponent_bits) {
  const int mantissa = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const auto top = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | top | 1 << (mantissa - 1));
  const double magnitude = std::abs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | top);
  const int power = std::max(std::ilogb(magnitude), 1 - bias);
  const double steps = std::nearbyint(std::ldexp(magnitude, mantissa - power));
  const double code = steps + std::ldexp(power + bias - 1, mantissa);
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::min<double>(code, top)));
}

void put(DType dtype, std::byte* out, std::size_t i, double value) {
  const auto half = [&](int exponent_bits) {
    const std::uint16_t code = narrow(value, exponent_bits);
    std::memcpy(out + 2 * i, &code, 2);
  };
  switch (dtype) {
    case DType::f32:
      return put<float>(out, i, value);
    case DType::f64:
      return put<double>(out, i, value);
    case DType::f16:
      return half(5);
    case DType::bf16:
      return half(8);
    case DType::i64:
      return put<std::int64_t>(out, i, value);
    case DType::u64:
      return put<std::uint64_t>(out, i, value);
    case DType::i32:
      return put<std::int32_t>(out, i, value);
    case DType::u32:
      return put<std::uint32_t>(out, i, value);
    case DType::i16:
      return put<std::int16_t>(out, i, value);
    case DType::u16:
      return put<std::uint16_t>(out, i, value);
    case DType::i8:
      return put<std::int8_t>(out, i, value);
    case DType::u8:
      return put<std::uint8_t>(out, i, value);
    case DType::boolean:
      return put<std::uint8_t>(out, i, value != 0);
    case DType::c64:
      put<float>(out, 2 * i, value);
      return put<float>(out, 2 * i + 1, -value);
    case DType::c128:
      put<double>(out, 2 * i, value);
      return put<double>(out, 2 * i + 1, -value);
    default:
      throw Error(ErrorKind::unsupported, "no values are made up for this type");
  }
}

}  // namespace

std::vector<Node*> all_nodes(const Model& model) {
  std::vector<Node*> nodes;
  for (const Graph* graph : all_graphs(model))
    for (const auto& node : graph->nodes()) nodes.push_back(node.get());
  return nodes;
}

Value& same_value(Model& copy, const Model& model, const Value& value) {
  const std::vector<Graph*> here = all_graphs(model), there = all_graphs(copy);
  const auto at = std::find(here.begin(), here.end(), &value.graph()) - here.begin();
  Value* found = there.at(static_cast<std::size_t>(at))->find(value.name());
  if (!found) throw Error(ErrorKind::internal, "the copy has no '" + value.name() + "'");
  return *found;
}

Tensor encode(DType dtype, const Dims& dims, const std::vector<double>& values) {
  return Tensor::make(dtype, dims, [&](std::byte* out) {
    for (std::size_t i = 0; i < values.size(); ++i) put(dtype, out, i, values[i]);
  });
}

void NodePlace::add(const std::string& what, const std::function<void(Node&)>& change) const {
  out.push_back({node.label() + ": " + what, [change, at = index](Model& copy) { change(*all_nodes(copy).at(at)); }});
}

void NodePlace::set(const std::string& attribute, const Attr& value, const std::string& text) const {
  add(attribute + " = " + text, [=](Node& n) { n.attrs.set(attribute, value); });
}

Mutations mutations(const Model& model) {
  Mutations all;
  mutate_extents(model, all);
  mutate_constants(model, all);
  mutate_attributes(model, all);
  mutate_nodes(model, all);
  mutate_readers(model, all);
  mutate_types(model, all);
  return all;
}

}  // namespace modelflow::obligations
