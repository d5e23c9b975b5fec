#include "src/rewrite/splat.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

namespace modelflow {
namespace {

constexpr std::int64_t kMostConverted = 4096;  // elements of other types than float that are looked at

template <class T>
std::optional<double> common(std::span<const T> elements) {
  if (elements.empty()) return {};
  const T first = elements.front();
  if (!std::all_of(elements.begin(), elements.end(), [&](T x) { return x == first; })) return {};
  return first;
}

/// Has no more digits than float16 has: what a float16 model leaves behind where it is computed in float32.
bool was_half(double value) {
  const auto single = static_cast<float>(value);
  return static_cast<double>(single) == value && (std::bit_cast<std::uint32_t>(single) & 0x1fff) == 0;
}

}  // namespace

std::optional<double> splat(const Value* value) {
  const Tensor* constant = value ? value->constant() : nullptr;
  if (!constant) return {};
  const DType dtype = constant->dtype();
  if (dtype == DType::f32) return common(constant->as<float>());
  if (bits(dtype) == 0 || bits(dtype) > 64 || dtype == DType::c64 || dtype == DType::boolean) return {};
  if (constant->elements() > kMostConverted) return {};
  const std::vector<double> elements = constant->to_doubles();
  return common(std::span<const double>(elements));
}

bool near(const pattern::Tree& number, double value, DType dtype) {
  const double rounding = dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 || was_half(value) ? 0x1p-11 : 0;
  return std::abs(value - number.number) <= (number.tolerance + rounding) * std::abs(number.number);
}

std::string wanted(const pattern::Tree& tree) {
  using Kind = pattern::Tree::Kind;
  const auto listed = [](const auto& items, auto text) {
    std::string out;
    for (const auto& item : items) {
      const std::string one = text(item);
      if (out.find(one) == std::string::npos) out += (out.empty() ? "" : " or ") + one;
    }
    return out;
  };
  switch (tree.kind) {
    case Kind::number: {
      char digits[32];
      const auto end = std::to_chars(digits, digits + sizeof(digits), tree.number, std::chars_format::general, 7).ptr;
      return {digits, end};
    }
    case Kind::op:
      return listed(tree.ops, [](const std::string& type) { return type; });
    case Kind::either:
    case Kind::optional:
      return listed(tree.inputs, [](const Pattern& inner) { return wanted(*inner); });
    case Kind::product:
      return "a product";
    default:
      return tree.name;
  }
}

}  // namespace modelflow
