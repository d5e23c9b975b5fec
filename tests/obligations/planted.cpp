// Models grown from the patterns of rules: each spelling that a pattern allows, with what stands around it drawn.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "modelflow/error.h"
#include "tests/obligations/mutation.h"
#include "tests/obligations/schemas.h"
#include "tests/obligations/seeds.h"
#include "tests/pass_cases.h"

namespace modelflow::obligations {
namespace {

using pattern::Tree;
using Random = std::mt19937_64;
constexpr std::size_t kKept = 4;  // of one rule

/// One drawn model in which a pattern stands.
class Plant {
 public:
  Plant(const Rule& rule, Random& random) : random_(random) {
    static const std::int64_t opsets[] = {9, 11, 12, 13, 15, 17, 18, 20, 21, 22, 23};
    model_.opsets[""] = opsets[random_() % std::size(opsets)];
    model_.opsets[std::string(kDomain)] = 1;
    model_.ir_version = 8;
    model_.graph().name = "planted";
    dims_.resize(1 + random_() % 4);
    for (std::int64_t& extent : dims_) extent = 1 + static_cast<std::int64_t>(random_() % 4);
    Value* root = grow(*rule.from);
    if (!root || !root->producer()) return;
    model_.graph().add_output(*root);
    whole_ = settle(model_);
  }
  bool whole() const { return whole_; }
  Model& model() { return model_; }

 private:
  Value* grow(const Tree& tree) {
    switch (tree.kind) {
      case Tree::Kind::any:
        return named(tree.name, random_() % 5 == 0);
      case Tree::Kind::constant:
        return named(tree.name, true);
      case Tree::Kind::number:
        return number(tree.number);
      case Tree::Kind::optional:
        return random_() % 2 ? grow(*tree.inputs[0]) : nullptr;
      case Tree::Kind::either:
        return grow(*tree.inputs[random_() % tree.inputs.size()]);
      case Tree::Kind::product:
        return product(tree);
      default:
        return node(tree);
    }
  }

  Value* named(const std::string& name, bool constant) {
    Value*& value = bound_[name];
    if (value) return value;
    Graph& graph = model_.graph();
    const Dims dims = drawn_dims();
    if (constant) {
      value = &graph.add_constant(drawn(dims), name);
    } else {
      std::vector<Dim> symbolic(dims.begin(), dims.end());
      if (!symbolic.empty() && random_() % 3 == 0) symbolic[0] = Dim::symbol("N");
      value = &graph.add_input(graph.unique_name(name), Type::tensor(DType::f32, Shape(symbolic)));
    }
    return value;
  }
  /// The extents of the model, mostly; else such as broadcast to them, or are those of weights.
  Dims drawn_dims() {
    Dims dims = dims_;
    switch (random_() % 8) {
      case 0:
        return {};
      case 1:
        return {dims.back()};
      case 2:
        dims[random_() % dims.size()] = 1;
        return dims;
      case 3:
        return {dims.back(), dims.back()};
      default:
        return dims;
    }
  }
  Tensor drawn(const Dims& dims) {
    std::normal_distribution<double> normal;
    std::vector<double> values(static_cast<std::size_t>(element_count(dims)));
    for (double& value : values) value = normal(random_);
    return encode(DType::f32, dims, values);
  }
  Value* number(double value) {
    static const Dims forms[] = {{}, {}, {1}, {1, 1}};
    const Dims dims = forms[random_() % 4];
    return &model_.graph().add_constant(encode(DType::f32, dims, {value}), "number");
  }

  Value* product(const Tree& tree) {
    std::vector<Value*> factors;
    for (const Pattern& input : tree.inputs) factors.push_back(grow(*input));
    if (tree.number != 1) factors.push_back(number(tree.number));
    std::shuffle(factors.begin(), factors.end(), random_);
    Value* all = factors[0];
    for (std::size_t i = 1; i < factors.size(); ++i) {
      std::vector<Value*> both = {all, factors[i]};
      if (random_() % 2) std::swap(both[0], both[1]);
      all = model_.graph().add("Mul", both).output();
    }
    return all;
  }

  Value* node(const Tree& tree) {
    std::vector<Value*> inputs;
    for (const Pattern& input : tree.inputs) inputs.push_back(grow(*input));
    if (tree.commutes && inputs.size() == 2 && random_() % 2) std::swap(inputs[0], inputs[1]);
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    const std::string& op = tree.ops[random_() % tree.ops.size()];
    Node& node = model_.graph().add(op, inputs, {.outputs = tree.output + 1});
    // Whatever the pattern asks of attributes: drawn until it likes them.
    const std::vector<AttributeKind> kinds = attributes_of(node, model_);
    for (int tries = 0; tries < 30; ++tries) {
      node.attrs = Attrs();
      for (const AttributeKind& kind : kinds)
        if (kind.required || random_() % 3 == 0) supply(node, kind);
      if (!tree.accepts || tree.accepts(node)) break;
    }
    infer_types(node, model_);
    return node.output(tree.output);
  }

  void supply(Node& node, const AttributeKind& kind) {
    const auto small = [&] { return static_cast<std::int64_t>(random_() % 5) - 2; };
    if (kind.name == "to") return void(node.attrs.set("to", std::int64_t{1}));
    if (kind.type == AttributeKind::Type::integer) {
      const std::vector<std::int64_t> values = meaningful(kind.name);
      node.attrs.set(kind.name, values.empty() ? small() : values[random_() % values.size()]);
    }
    if (kind.type == AttributeKind::Type::number) node.attrs.set(kind.name, static_cast<float>(random_() % 8) / 8.0F);
    if (kind.type != AttributeKind::Type::integers) return;
    Ints values(1 + random_() % dims_.size());
    if (kind.name == "perm") {
      values.resize(dims_.size());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i);
      std::shuffle(values.begin(), values.end(), random_);
    } else {
      for (std::int64_t& value : values) value = small();
    }
    node.attrs.set(kind.name, values);
  }

  Random& random_;
  Model model_;
  Dims dims_;
  std::map<std::string, Value*> bound_;
  bool whole_ = false;
};

/// Draws in which the rule fires.
void plant(const Pass& pass, const Rule& rule, int draws, Random& random, std::vector<Seed>& seeds) {
  Options options;
  options.measure = false;
  options.target = Target::parse("cpu:avx512");
  for (const Rule& other : pass.rules)
    if (other.name != rule.name) options.disabled.insert(other.name);
  std::size_t kept = 0;
  for (int i = 0; i < draws && kept < kKept; ++i) {
    try {
      Plant plant(rule, random);
      if (!plant.whole()) continue;
      const Transformed done = transform({pass}, options, plant.model(), nullptr);
      if (!done.report.hits.contains(rule.name)) continue;
      seeds.push_back({"rule " + rule.name + " #" + std::to_string(kept++), {pass}, options, plant.model()});
    } catch (const Error&) {  // no model: the next one
    }
  }
}

}  // namespace

std::vector<Seed> planted_seeds(unsigned long long number, int draws) {
  std::vector<Seed> seeds;
  Random random(number);
  for (const Pass& pass : every_pass())
    for (const Rule& rule : pass.rules) plant(pass, rule, draws, random, seeds);
  return seeds;
}

}  // namespace modelflow::obligations
