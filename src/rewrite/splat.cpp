// Constants all of whose elements are one number.
#include "src/rewrite/splat.h"

#include <algorithm>
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

/// Less than half a step away, where mantissas have so many bits. Of a number that the type has, that is the number
/// alone: below a power of two the next one lies half a step away.
bool rounds_to(double number, double value, int bits) {
  int exponent = 0;
  (void)std::frexp(number, &exponent);
  return value == number || (number != 0 && std::abs(value - number) < std::ldexp(0.5, exponent - bits));
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

bool is_rounded(double number, double value, DType dtype) {
  if (dtype == DType::bf16) return rounds_to(number, value, 8);
  if (dtype == DType::f16) return rounds_to(number, value, 11);
  return rounds_to(number, value, 24);
}

bool is_rounded_product(double number, double value, int factors) {
  return value == number || std::abs(value - number) < std::max(factors, 1) * 0x1p-24 * std::abs(number);
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
