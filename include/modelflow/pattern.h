// Patterns of nodes and the rules that are made of them, for passes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/graph.h"
#include "modelflow/kernel.h"

namespace modelflow {

class Build;
class Match;

namespace pattern {

/// A tree of what to look for, written like the formula it stands for.
///
///     auto x = any("x");
///     Pattern from = x * clip(x + 3, 0, 6) / 6;        // sums and products match in either order
///
/// Copies share the tree. The same name twice must bind the same value.
struct Tree;
using Pattern = std::shared_ptr<const Tree>;

struct Tree {
  enum class Kind { any, constant, number, op, optional, either, product } kind = Kind::any;
  std::string name;              ///< any, constant: the variable; op: label of the node (may be empty)
  std::vector<std::string> ops;  ///< op: alternatives, "Relu", "modelflow.Conv"
  std::vector<Pattern> inputs;   ///< op: in order; trailing inputs that are not listed must be absent
  double number = 0;             ///< number: a constant all of whose elements are this, rounded to its type
  bool commutes = false;         ///< op: two inputs, either order
  bool more_inputs = false;      ///< op: further inputs are allowed
  std::size_t output = 0;        ///< op: which output of the node is meant
  std::function<Verdict(const Node&)> accepts;  ///< op: asked before the inputs
};

Pattern any(std::string name);       ///< any value
Pattern constant(std::string name);  ///< a constant
/// A constant, every element of which is `value` as its type rounds it, that is half a last digit away at most. Give
/// `value` in full: 0.7071 is another number than sqrt(0.5).
Pattern number(double value);
Pattern op(std::string type, std::vector<Pattern> inputs, std::string label = "");
Pattern op_any(std::vector<std::string> types, std::vector<Pattern> inputs, std::string label = "");
/// The value may be absent, or be present and match.
Pattern optional(Pattern inner);
/// `op`, with further inputs of any kind allowed.
Pattern open(Pattern op);
/// `op`, where the node passes a test: where(op("Gelu", {x}), [](const Node& n) { return ...; }).
Pattern where(Pattern op, std::function<Verdict(const Node&)> accepts);
/// `op`, where an attribute has this value; `otherwise` is its value when it is absent.
Pattern with(Pattern op, std::string attribute, double value, double otherwise);
Pattern with(Pattern op, std::string attribute, std::string value, std::string otherwise);
/// The first of these that matches.
Pattern either(std::vector<Pattern> alternatives);
/// The product of these factors and a number, however it was written with Mul and Div: product({x, y}, 0.5) matches
/// x * (0.5 * y), (x / 2) * y, (y * x) / 2 and so on. Each constant that the number is made of is rounded once.
Pattern product(std::vector<Pattern> factors, double number = 1);

Pattern operator+(Pattern a, Pattern b);
Pattern operator*(Pattern a, Pattern b);
Pattern operator-(Pattern a, Pattern b);
Pattern operator/(Pattern a, Pattern b);
// With a number, each form also matches its inverse: x + 3 is x - (-3), x / 2 is x * 0.5.
Pattern operator+(Pattern a, double b);
Pattern operator*(Pattern a, double b);
Pattern operator-(Pattern a, double b);
Pattern operator/(Pattern a, double b);
Pattern operator+(double a, Pattern b);
Pattern operator*(double a, Pattern b);
Pattern operator-(double a, Pattern b);
Pattern operator/(double a, Pattern b);
Pattern pow(Pattern base, double exponent);
Pattern clip(Pattern x, double low, double high);  ///< Clip with attributes (opset < 11) or constant inputs

}  // namespace pattern

using pattern::Pattern;

class Matcher;

/// What a pattern bound.
class Match {
 public:
  /// The value bound to a variable; null for an absent optional.
  Value* operator[](std::string_view variable) const;
  Value& value(std::string_view variable) const;  ///< throws Error(internal) when unbound
  const Tensor& constant(std::string_view variable) const;
  Node& node(std::string_view label) const;
  Node& root() const { return *root_; }
  const std::vector<Node*>& nodes() const { return nodes_; }  ///< every matched node, root first

 private:
  friend class Matcher;
  std::map<std::string, Value*, std::less<>> values_;
  std::map<std::string, Node*, std::less<>> labels_;
  std::vector<Node*> nodes_;
  Node* root_ = nullptr;
};

/// Makes the replacement, in front of the root of the match. Every node is typed as it is made.
class Build {
 public:
  Build(Graph& graph, Node& before, struct Context& context);
  Value& op(std::string_view type, std::vector<Value*> inputs, Attrs attrs = {}, std::size_t outputs = 1);
  Value& constant(Tensor tensor, std::string_view stem = "const");
  Context& context() const { return context_; }
  int opset() const;
  Graph& graph() { return graph_; }
  const std::vector<Node*>& made() const { return made_; }
  /// Says why there is no replacement: `return build.refuse(no("...", x));`
  std::vector<Value*> refuse(Verdict why);
  const Verdict& refusal() const { return refusal_; }
  /// Erases what was made, as far as nothing reads it.
  void undo();

 private:
  Graph& graph_;
  Node& before_;
  Context& context_;
  std::vector<Node*> made_;
  std::vector<Value*> constants_;
  Verdict refusal_;
};

using Condition = std::function<Verdict(const Match&)>;

/// A rewrite: what to look for, when it holds and what to put in its place. The engine guarantees, so that no rule says
/// it: inner values have no reader outside the match and are no graph outputs; `into` returns values for the outputs of
/// the root (one: the first), or an empty vector to refuse; names, dtypes and shapes of the outputs are kept, a
/// replacement that would change them is undone.
struct Rule {
  std::string name;  ///< "gelu-from-erf"
  std::string doc;   ///< "x/sqrt(2) -> Erf ... -> Gelu (BERT exports)": one line
  Pattern from;
  std::vector<Condition> when;
  std::function<std::vector<Value*>(const Match&, Build&)> into;
};

}  // namespace modelflow
