// Piecewise linear activations (Relu, LeakyRelu, Clip) in the spellings that exporters emit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "passes/graph/facts.h"
#include "passes/normalize/activations.h"

namespace modelflow::passes {

using namespace pattern;

namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest(), kHighest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Bounds {
  float low = kLowest, high = kHighest;
};

/// What a Relu or Clip bounds its input to; nullopt when a bound is computed. A bound that Clip does not name is the
/// lowest or the highest number, which infinities are cut to; Relu leaves them.
std::optional<Bounds> bounds_of(const Node& node) {
  if (node.is("Relu")) return Bounds{0, kInfinity};
  Bounds bounds{node.attrs.number("min", kLowest), node.attrs.number("max", kHighest)};
  for (const std::size_t i : {1, 2}) {
    if (!node.input(i)) continue;
    const std::optional<double> number = const_number(node.input(i));
    if (!number) return std::nullopt;
    (i == 1 ? bounds.low : bounds.high) = static_cast<float>(*number);
  }
  return bounds;
}

ActivationNode clip_node(Bounds bounds) {
  if (bounds.low == 0 && bounds.high == kInfinity) return {"Relu"};
  return {"Clip", bounds.low, bounds.high};
}

/// Numbers in this order, not NaN: a bound that is NaN bounds nothing in ONNX Runtime, and everything in Min and Max.
Verdict overlap(float low, float high) { return low <= high ? yes() : no("the bounds do not overlap"); }

Verdict known_bounds(const Match& m) {
  const std::optional<Bounds> a = bounds_of(m.node("outer")), b = bounds_of(m.node("inner"));
  if (!a || !b) return no("a bound is computed");
  // One of them alone may be upside down (Clip gives its upper bound then), or NaN.
  for (const Bounds& bounds : {*a, *b})
    if (Verdict verdict = overlap(bounds.low, bounds.high); !verdict) return verdict;
  return overlap(std::max(a->low, b->low), std::min(a->high, b->high));
}

/// NaN where the constant is no single number.
float number_of(const Match& m, std::string_view name) {
  return static_cast<float>(const_number(&m.value(name)).value_or(std::numeric_limits<double>::quiet_NaN()));
}

Verdict low_below_high(const Match& m) { return overlap(number_of(m, "low"), number_of(m, "high")); }

/// A slope of 0 makes NaN of infinity, and a maximum keeps that.
Verdict slope_below_one(const Match& m) {
  const float k = number_of(m, "k");
  return k > 0 && k <= 1 ? yes() : no("the slope is not between 0 and 1", m.value("k").name());
}

Verdict finite_slope(const Match& m) {
  return std::isfinite(number_of(m, "k")) ? yes() : no("the slope is not finite", m.value("k").name());
}

Pattern either_order(const char* type, Pattern a, Pattern b) {
  auto tree = std::make_shared<Tree>(*op(type, {std::move(a), std::move(b)}));
  tree->commutes = true;
  return tree;
}

}  // namespace

std::vector<Rule> piecewise_linear_rules() {
  const Pattern x = any("x"), k = constant("k"), low = constant("low"), high = constant("high");
  std::vector<Rule> rules;
  add_spellings(rules, "leaky-relu-from-prelu", "PRelu with one slope -> LeakyRelu", {op("PRelu", {x, k})},
                [](const Match& m) {
                  return ActivationNode{"LeakyRelu", number_of(m, "k")};
                },
                {finite_slope});
  add_spellings(rules, "leaky-relu-from-max", "Max(x, k * x), 0 < k <= 1 -> LeakyRelu", {either_order("Max", x, x * k)},
                [](const Match& m) {
                  return ActivationNode{"LeakyRelu", number_of(m, "k")};
                },
                {slope_below_one});
  add_spellings(
      rules, "clip-from-min-max", "Min(Max(x, low), high), in either nesting -> Clip",
      {either_order("Min", either_order("Max", x, low), high), either_order("Max", either_order("Min", x, high), low)},
      [](const Match& m) {
        return clip_node({number_of(m, "low"), number_of(m, "high")});
      },
      {low_below_high});
  add_spellings(rules, "clip-from-relu-min", "Min(Relu(x), high) -> Clip", {either_order("Min", op("Relu", {x}), high)},
                [](const Match& m) {
                  return clip_node({0, number_of(m, "high")});
                },
                {[](const Match& m) { return overlap(0, number_of(m, "high")); }});
  add_spellings(rules, "relu-from-max", "Max(x, 0) -> Relu", {either_order("Max", x, number(0))},
                [](const Match&) { return ActivationNode{"Relu"}; });
  add_spellings(rules, "clip-of-clip", "Clip or Relu of Clip or Relu -> one Clip",
                {open(op_any({"Clip", "Relu"}, {open(op_any({"Clip", "Relu"}, {x}, "inner"))}, "outer"))},
                [](const Match& m) {
                  const Bounds a = *bounds_of(m.node("outer")), b = *bounds_of(m.node("inner"));
                  return clip_node({std::max(a.low, b.low), std::min(a.high, b.high)});
                },
                {known_bounds});
  return rules;
}

}  // namespace modelflow::passes
