// Patterns put together.
#include "modelflow/pattern.h"

#include <utility>

#include "modelflow/error.h"

namespace modelflow::pattern {
namespace {

std::shared_ptr<Tree> leaf(Tree::Kind kind, std::string name) {
  auto tree = std::make_shared<Tree>();
  tree->kind = kind;
  tree->name = std::move(name);
  return tree;
}

Pattern binary(const char* type, Pattern a, Pattern b, bool commutes) {
  auto tree = leaf(Tree::Kind::op, "");
  tree->ops = {type};
  tree->inputs = {std::move(a), std::move(b)};
  tree->commutes = commutes;
  return tree;
}

std::shared_ptr<Tree> copy_of(const Pattern& pattern, const char* builder) {
  if (pattern->kind != Tree::Kind::op) {
    throw Error(ErrorKind::internal, std::string("pattern: ") + builder + " wants an op");
  }
  return std::make_shared<Tree>(*pattern);
}

/// Both tests hold.
std::function<Verdict(const Node&)> both(std::function<Verdict(const Node&)> a, std::function<Verdict(const Node&)> b) {
  if (!a) return b;
  return [a = std::move(a), b = std::move(b)](const Node& node) {
    Verdict verdict = a(node);
    return verdict ? b(node) : verdict;
  };
}

}  // namespace

Pattern any(std::string name) { return leaf(Tree::Kind::any, std::move(name)); }

Pattern constant(std::string name) { return leaf(Tree::Kind::constant, std::move(name)); }

Pattern number(double value) {
  auto tree = leaf(Tree::Kind::number, "");
  tree->number = value;
  return tree;
}

Pattern op(std::string type, std::vector<Pattern> inputs, std::string label) {
  return op_any({std::move(type)}, std::move(inputs), std::move(label));
}

Pattern op_any(std::vector<std::string> types, std::vector<Pattern> inputs, std::string label) {
  auto tree = leaf(Tree::Kind::op, std::move(label));
  tree->ops = std::move(types);
  tree->inputs = std::move(inputs);
  return tree;
}

Pattern optional(Pattern inner) {
  auto tree = leaf(Tree::Kind::optional, "");
  tree->inputs = {std::move(inner)};
  return tree;
}

Pattern open(Pattern op) {
  auto tree = copy_of(op, "open");
  tree->more_inputs = true;
  return tree;
}

Pattern where(Pattern op, std::function<Verdict(const Node&)> accepts) {
  auto tree = copy_of(op, "where");
  tree->accepts = both(tree->accepts, std::move(accepts));
  return tree;
}

Pattern with(Pattern op, std::string attribute, double value, double otherwise) {
  return where(std::move(op), [attribute = std::move(attribute), value, otherwise](const Node& node) {
    const Attr* attr = node.attrs.find(attribute);
    double actual = otherwise;
    if (attr && std::holds_alternative<float>(*attr))
      actual = std::get<float>(*attr);
    else if (attr)
      actual = static_cast<double>(node.attrs.integer(attribute));
    if (actual == value || actual == static_cast<double>(static_cast<float>(value))) return yes();
    return no("its attribute '" + attribute + "' has another value");
  });
}

Pattern with(Pattern op, std::string attribute, std::string value, std::string otherwise) {
  return where(std::move(op), [attribute = std::move(attribute), value = std::move(value),
                               otherwise = std::move(otherwise)](const Node& node) {
    const std::string actual = node.attrs.text(attribute, otherwise);
    return actual == value ? yes() : no("its attribute '" + attribute + "' is '" + actual + "'");
  });
}

Pattern either(std::vector<Pattern> alternatives) {
  auto tree = leaf(Tree::Kind::either, "");
  tree->inputs = std::move(alternatives);
  return tree;
}

Pattern product(std::vector<Pattern> factors, double number) {
  auto tree = leaf(Tree::Kind::product, "");
  tree->inputs = std::move(factors);
  tree->number = number;
  return tree;
}

Pattern operator+(Pattern a, Pattern b) { return binary("Add", std::move(a), std::move(b), true); }
Pattern operator*(Pattern a, Pattern b) { return binary("Mul", std::move(a), std::move(b), true); }
Pattern operator-(Pattern a, Pattern b) { return binary("Sub", std::move(a), std::move(b), false); }
Pattern operator/(Pattern a, Pattern b) { return binary("Div", std::move(a), std::move(b), false); }

Pattern operator+(Pattern a, double b) { return either({a + number(b), a - number(-b)}); }
Pattern operator-(Pattern a, double b) { return either({a - number(b), a + number(-b)}); }
Pattern operator*(Pattern a, double b) {
  if (b == 0) return a * number(b);
  return either({a * number(b), a / number(1 / b)});
}
Pattern operator/(Pattern a, double b) {
  if (b == 0) return a / number(b);
  return either({a / number(b), a * number(1 / b)});
}
Pattern operator+(double a, Pattern b) { return std::move(b) + a; }
Pattern operator*(double a, Pattern b) { return std::move(b) * a; }
Pattern operator-(double a, Pattern b) { return number(a) - std::move(b); }
Pattern operator/(double a, Pattern b) { return number(a) / std::move(b); }

Pattern pow(Pattern base, double exponent) { return op("Pow", {std::move(base), number(exponent)}); }

Pattern clip(Pattern x, double low, double high) {
  const Pattern by_attributes = with(with(op("Clip", {x}), "min", low, -3.402823e38), "max", high, 3.402823e38);
  return either({op("Clip", {x, number(low), number(high)}), by_attributes});
}

}  // namespace modelflow::pattern
