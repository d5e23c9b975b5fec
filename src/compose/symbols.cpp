// Symbols of declared types, renamed and replaced by others or by numbers.
#include "src/compose/symbols.h"

#include <map>
#include <set>
#include <string>

#include "src/onnx/derived.h"

namespace modelflow {
namespace {

/// What becomes of symbols, by name.
using Symbols = std::map<std::string, Dim>;

template <class Visit>
void each_shape(Graph& graph, const Visit& visit) {
  const auto see = [&](Value* value) {
    if (value && value->type.is_tensor() && value->shape().has_rank()) visit(value->type.shape);
  };
  for (Value* value : graph.inputs()) see(value);
  for (const auto& node : graph.nodes()) {
    for (Value* value : node->outputs()) see(value);
    for (Graph* inner : node->subgraphs()) each_shape(*inner, visit);
  }
}

/// A symbol as it is replaced; what is computed from one that is becomes unknown, and inference will tell.
Dim replaced(const Dim& dim, const Symbols& symbols) {
  for (const std::string& symbol : dim.symbols()) {
    const auto found = symbols.find(symbol);
    if (found == symbols.end()) continue;
    return dim == Dim::symbol(symbol) ? found->second : Dim();
  }
  return dim;
}

void replace(Model& model, const Symbols& symbols) {
  if (symbols.empty()) return;
  each_shape(model.graph(), [&](Shape& shape) {
    std::vector<Dim> dims = shape.dims();
    for (Dim& dim : dims) dim = replaced(dim, symbols);
    shape = std::move(dims);
  });
}

std::set<std::string> symbols_of(Model& model) {
  std::set<std::string> all;
  each_shape(model.graph(), [&](const Shape& shape) {
    for (const Dim& dim : shape.dims())
      for (std::string& symbol : dim.symbols()) all.insert(std::move(symbol));
  });
  return all;
}

bool is_symbol(const Dim& dim) { return dim.symbols().size() == 1 && dim == Dim::symbol(dim.symbols().front()); }

}  // namespace

void separate_symbols(std::vector<Part>& parts) {
  std::set<std::string> taken;
  for (Part& part : parts) {
    Symbols renamed;
    std::set<std::string> own = symbols_of(part.model);
    for (const std::string& symbol : own) {
      if (symbol.starts_with(kDerived))
        renamed[symbol] = Dim();
      else if (taken.contains(symbol))
        renamed[symbol] = Dim::symbol(part.name + "." + symbol);
    }
    replace(part.model, renamed);
    taken.merge(own);
  }
}

void join_symbols(std::vector<Part>& parts, const Type& from, const Type& to) {
  if (!from.is_tensor() || !to.is_tensor() || !from.shape.has_rank() || !to.shape.has_rank()) return;
  Symbols joined;
  for (std::size_t i = 0; i < from.shape.rank(); ++i) {
    const Dim &a = from.shape[i], &b = to.shape[i];
    if (is_symbol(b) && !a.unknown() && !(a == b))
      joined.try_emplace(b.str(), a);
    else if (is_symbol(a) && b.known())
      joined.try_emplace(a.str(), b);
  }
  for (Part& part : parts) replace(part.model, joined);
}

}  // namespace modelflow
