// Puts the graph of a pattern into a model: matches types, renames symbols, copies nodes with their subgraphs.
#include "tests/fuzz/plant.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "src/onnx/derived.h"

namespace modelflow::fuzz {
namespace {

using Symbols = std::map<std::string, Dim>;

bool is_symbol(const Dim& dim) { return dim.symbols().size() == 1 && dim == Dim::symbol(dim.symbols()[0]); }

/// Whether the pattern's dim can stand for this one of the model; what its symbol then means is noted.
bool unify(const Dim& pattern, const Dim& actual, Symbols& symbols) {
  if (pattern.unknown()) return true;
  if (!is_symbol(pattern)) return pattern == actual;
  const auto [found, fresh] = symbols.emplace(pattern.symbols()[0], actual);
  return fresh ? !actual.unknown() : found->second == actual;
}

bool unify(const Type& pattern, const Type& actual, Symbols& symbols) {
  if (!pattern.is_tensor() || !actual.is_tensor() || pattern.dtype != actual.dtype) return false;
  if (!pattern.shape.has_rank()) return true;
  if (!actual.shape.has_rank() || actual.shape.rank() != pattern.shape.rank()) return false;
  Symbols attempt = symbols;
  for (std::size_t i = 0; i < pattern.shape.rank(); ++i)
    if (!unify(pattern.shape[i], actual.shape[i], attempt)) return false;
  symbols = std::move(attempt);
  return true;
}

/// The pattern's dim in the symbols of the model.
Dim translated(const Dim& dim, Symbols& symbols, Dice& dice) {
  if (dim.unknown() || dim.known()) return dim;
  for (const std::string& name : dim.symbols()) {
    if (symbols.contains(name)) continue;
    const Dim number(dice.any<std::int64_t>({1, 2, 3, 5, 8, 16, 33}));
    symbols[name] =
        dice.chance(0.25) ? number : Dim::symbol(dice.chance(0.6) ? name : dice.any<const char*>({"N", "S", "T"}));
  }
  if (is_symbol(dim)) return symbols.at(dim.symbols()[0]);
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : dim.symbols()) {
    if (const auto number = symbols.at(name).number())
      numbers[name] = *number;
    else if (symbols.at(name) != Dim::symbol(name))
      return {};
  }
  if (numbers.empty()) return dim;
  const auto number = dim.evaluate(numbers);
  return number ? Dim(*number) : Dim();
}

/// Nobody names an input's extent as inference names what it makes of other extents.
Dim given(const Dim& dim) {
  for (const std::string& symbol : dim.symbols())
    if (symbol.starts_with(kDerived)) return {};
  return dim;
}

Type translated(Type type, Symbols& symbols, Dice& dice) {
  if (!type.is_tensor() || !type.shape.has_rank()) return type;
  std::vector<Dim> dims;
  for (const Dim& dim : type.shape.dims()) dims.push_back(given(translated(dim, symbols, dice)));
  type.shape = Shape(std::move(dims));
  return type;
}

/// A subgraph in the symbols of the model, with names that nothing else there has.
void translate_all(Graph& graph, Symbols& symbols, Dice& dice) {
  const auto adapt = [&](Value& value) {
    value.type = translated(value.type, symbols, dice);
    graph.rename(value, graph.unique_name(value.name()));
  };
  for (Value* value : graph.inputs()) adapt(*value);
  for (Value* value : graph.initializers())
    if (value->constant()) adapt(*value);
  for (const auto& node : graph.nodes()) {
    for (Value* value : node->outputs())
      if (value) adapt(*value);
    for (Graph* inner : node->subgraphs()) translate_all(*inner, symbols, dice);
  }
}

/// Adds the functions that the pattern calls; false where a domain of them is taken.
bool add_functions(Model& model, const Model& pattern) {
  std::set<std::string> defined;
  for (const Function& function : pattern.functions) defined.insert(function.domain);
  for (const auto& [domain, version] : pattern.opsets) {
    if (defined.contains(domain) && model.opsets.contains(domain)) return false;
    if (!domain.empty()) model.opsets.emplace(domain, version);
  }
  for (const Function& function : pattern.functions) model.functions.push_back(function);
  return true;
}

class Planter {
 public:
  Planter(Model& model, const Model& pattern, Dice& dice)
      : graph_(model.graph()), pattern_(pattern.graph()), dice_(dice) {}

  void bind_inputs(std::vector<Value*> pool) {
    dice_.shuffle(pool);
    for (Value* input : pattern_.inputs()) {
      Value* found = nullptr;
      if (!input->is_initializer() && dice_.chance(0.75))
        for (Value* value : pool)
          if (!found && unify(input->type, value->type, symbols_)) found = value;
      if (!found) {
        found = &graph_.add_input(graph_.unique_name(input->name()), translated(input->type, symbols_, dice_));
        if (input->initializer()) graph_.set_initializer(*found, *input->initializer());
      }
      made_[input] = found;
    }
    for (Value* value : pattern_.initializers())
      if (value->constant()) made_[value] = &graph_.add_constant(*value->constant(), value->name());
  }

  void copy_nodes() {
    for (const auto& node : pattern_.nodes()) {
      std::vector<Value*> inputs;
      for (const Value* input : node->inputs()) inputs.push_back(input ? made_.at(input) : nullptr);
      const std::string op = (node->domain().empty() ? "" : node->domain() + ":") + node->op();
      Node& copy = graph_.add(op, inputs, {.outputs = node->outputs().size()});
      copy.overload = node->overload;
      for (const auto& [name, attr] : node->attrs) copy.attrs.set(name, copied(attr, copy));
      for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        Value* output = copy.output(i);
        if (!node->outputs()[i]) {
          graph_.set_output(copy, i, nullptr);
          graph_.erase(*output);
        } else {
          made_[node->outputs()[i]] = output;
        }
      }
    }
  }

  std::vector<Value*> outputs() const {
    std::vector<Value*> found;
    for (const Value* output : pattern_.outputs()) found.push_back(made_.at(output));
    return found;
  }

 private:
  Attr copied(const Attr& attr, Node& owner) {
    const auto* one = std::get_if<Subgraph>(&attr);
    if (!one || !*one) return attr;
    Subgraph copy = (*one)->clone(&owner, made_);
    translate_all(*copy, symbols_, dice_);
    return copy;
  }

  Graph& graph_;
  const Graph& pattern_;
  Dice& dice_;
  Symbols symbols_;
  std::unordered_map<const Value*, Value*> made_;
};

}  // namespace

std::vector<Value*> plant(Model& model, const Model& pattern, const std::vector<Value*>& pool, Dice& dice) {
  if (!add_functions(model, pattern)) return {};
  Planter planter(model, pattern, dice);
  planter.bind_inputs(pool);
  planter.copy_nodes();
  return planter.outputs();
}

std::vector<Value*> readable(Graph& graph) {
  std::vector<Value*> found;
  for (Value* input : graph.inputs())
    if (input->type.is_tensor()) found.push_back(input);
  for (const auto& node : graph.nodes())
    for (Value* output : node->outputs())
      if (output && output->type.is_tensor() && output->dtype() != DType::undefined) found.push_back(output);
  return found;
}

}  // namespace modelflow::fuzz
