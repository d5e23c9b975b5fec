// Symbols of inputs that can be one number only: a batch that an exporter wrote as 1 into the targets of Reshapes, or
// into the indices of what is scattered.
#include <algorithm>
#include <set>

#include "modelflow/shape_values.h"
#include "modelflow/symbols.h"
#include "passes/clean/clean.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {
namespace {

using Settled = std::map<std::string, std::int64_t>;

/// What the file calls extents of inputs.
std::set<std::string> declared_symbols(const Graph& graph) {
  std::set<std::string> symbols;
  for (const Value* input : graph.inputs())
    if (input->type.is_tensor() && input->shape().has_rank())
      for (const Dim& dim : input->shape().dims())
        if (is_symbol(dim)) symbols.insert(dim.symbols().front());
  return symbols;
}

/// How many elements a Reshape lets through; unknown where that follows from what comes in.
Dim admitted_elements(const Node& node, ShapeValues& contents) {
  const auto target = contents.numbers(node.input(1));
  if (!target || std::ranges::any_of(*target, [](std::int64_t extent) { return extent <= 0; })) return {};
  return Shape::of(*target).elements();
}

/// The only numbers for the symbols of `extent` with which it is `number`: n for 12 * n, 1 for each where all of them
/// have to be 1. Empty where there are others, or where inference made up a symbol.
Settled solution(const Dim& extent, std::int64_t number, const std::set<std::string>& declared) {
  Dim factor = extent;
  const std::vector<std::string> symbols = extent.symbols();
  for (const std::string& symbol : symbols) {
    if (!declared.contains(symbol)) return {};
    while (!factor.known() && !factor.unknown() && !factor.divided_by(Dim::symbol(symbol)).unknown())
      factor = factor.divided_by(Dim::symbol(symbol));
  }
  if (!factor.known() || factor.value() <= 0 || number % factor.value() != 0) return {};
  const std::int64_t each = number / factor.value();
  const bool alone = symbols.size() == 1 && extent == Dim::symbol(symbols.front()) * factor;
  if (!alone && each != 1) return {};
  Settled found;
  for (const std::string& symbol : symbols) found[symbol] = each;
  return found;
}

/// Symbols of what Reshapes to constant targets let through.
Settled settled_by_reshapes(const Model& model, const std::set<std::string>& declared) {
  ShapeValues contents(model.ir_version);
  Settled found;
  for (const Node* node : nodes_of(model.graph(), {"Reshape"})) {  // those of branches need not run
    const Value *x = node->input(0), *target = node->input(1);
    if (!x || !target || !x->type.is_tensor() || !x->shape().has_rank()) continue;
    const Dim admitted = admitted_elements(*node, contents);
    if (!admitted.known()) continue;
    found.merge(solution(x->shape().elements().with(model.settled), admitted.value(), declared));
  }
  return found;
}

/// Symbols of what is scattered: it has the extents of its indices.
Settled settled_by_scatters(const Model& model, const std::set<std::string>& declared) {
  Settled found;
  for (const Node* node : nodes_of(model.graph(), {"ScatterElements"})) {
    const std::optional<std::size_t> rank = rank_of(node->input(1));
    if (!rank || rank_of(node->input(2)) != rank) continue;
    for (std::size_t i = 0; i < *rank; ++i) {
      const Dim &index = node->input(1)->shape()[i], update = node->input(2)->shape()[i].with(model.settled);
      if (index.known() && !update.known()) found.merge(solution(update, index.value(), declared));
    }
  }
  return found;
}

int settle(Model& model, Context& context) {
  const std::set<std::string> declared = declared_symbols(model.graph());
  if (declared.empty()) return 0;
  Settled found = settled_by_reshapes(model, declared);
  if (found.empty()) found = settled_by_scatters(model, declared);
  if (found.empty()) return 0;
  context.hit("one-number", static_cast<int>(found.size()));
  model.settled.merge(found);
  infer_types(model);
  return 1;
}

}  // namespace

Pass settled_symbols() {
  return {.name = "settled-symbols",
          .doc =
              "Symbols of inputs that a Reshape with a constant target, or indices of what is scattered, allow one "
              "number only become this number in "
              "the shapes of all other values: all that depends on them is known. Inputs stay as they are declared.",
          .run = [](Graph&, Context& context) { return settle(context.model, context); },
          .whole_model = true};
}

}  // namespace modelflow::passes
