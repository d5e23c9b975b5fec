// Symbols of declared types, renamed and replaced by others or by numbers.
#include "src/compose/symbols.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "modelflow/symbols.h"
#include "src/onnx/derived.h"
#include "src/onnx/held_dims.h"

namespace modelflow {
namespace {

/// What becomes of symbols, by name.
using Symbols = std::map<std::string, Dim>;

/// What sets symbols apart in arithmetic.
constexpr std::string_view kSigns = " *+-()/";

template <class Visit>
void each_type(Graph& graph, const Visit& visit) {
  for (Value* value : graph.inputs()) visit(value->type);
  for (const auto& node : graph.nodes()) {
    for (Value* value : node->outputs())
      if (value) visit(value->type);
    for (Graph* inner : node->subgraphs()) each_type(*inner, visit);
  }
}

template <class Visit>
void each_type(Model& model, const Visit& visit) {
  each_type(model.graph(), visit);
  for (Function& function : model.functions) each_type(*function.body, visit);
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
  each_type(model, [&](Type& type) { change_dims(type, [&](const Dim& dim) { return replaced(dim, symbols); }); });
}

std::set<std::string> symbols_of(Model& model) {
  std::set<std::string> all;
  each_type(model, [&](Type& type) {
    change_dims(type, [&](const Dim& dim) {
      for (std::string& symbol : dim.symbols()) all.insert(std::move(symbol));
      return dim;
    });
  });
  return all;
}

/// "part.symbol", with a number where that is taken, and without what would read back as arithmetic.
std::string fresh_symbol(const Part& part, const std::string& symbol, std::set<std::string>& taken) {
  std::string stem = part.name + "." + symbol;
  if (!is_symbol(Dim::parse(stem)))
    std::ranges::replace_if(
        stem, [](char c) { return kSigns.find(c) != kSigns.npos; }, '_');
  std::string name = stem;
  for (int i = 2; !taken.insert(name).second; ++i) name = stem + "_" + std::to_string(i);
  return name;
}

}  // namespace

void separate_symbols(std::vector<Part>& parts) {
  std::vector<std::set<std::string>> own;
  own.reserve(parts.size());
  for (Part& part : parts) own.push_back(symbols_of(part.model));
  std::set<std::string> earlier, taken;  // a new name is none that any part has
  for (const std::set<std::string>& symbols : own) taken.insert(symbols.begin(), symbols.end());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Symbols renamed;
    for (const std::string& symbol : own[i]) {
      if (symbol.starts_with(kDerived) || symbol.starts_with('('))  // made of symbols that get other names
        renamed[symbol] = Dim();
      else if (!earlier.insert(symbol).second)
        renamed[symbol] = Dim::symbol(fresh_symbol(parts[i], symbol, taken));
    }
    replace(parts[i].model, renamed);
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
