// What inference says of a model's values against what they are.
#include "tests/obligations/said.h"

#include <algorithm>
#include <map>

#include "modelflow/error.h"
#include "src/verify/compare.h"

namespace modelflow::obligations {
namespace {

std::map<std::string, std::int64_t> symbols_of(const Model& model, const Feeds& feeds) {
  std::map<std::string, std::int64_t> symbols;
  for (const Value* input : model.graph().inputs()) {
    const auto fed = feeds.find(input->name());
    if (fed == feeds.end() || !input->shape().has_rank()) continue;
    for (std::size_t i = 0; i < input->shape().rank(); ++i) {
      const Dim& dim = input->shape()[i];
      if (dim.symbols().size() == 1 && dim == Dim::symbol(dim.symbols()[0]))
        symbols[dim.symbols()[0]] = fed->second.dims()[i];
    }
  }
  return symbols;
}

bool contradicts(const Type& said, const Tensor& is, const std::map<std::string, std::int64_t>& symbols) {
  if (!said.is_tensor() || is.dtype() == DType::undefined) return false;
  if (said.dtype != DType::undefined && said.dtype != is.dtype()) return true;
  if (!said.shape.has_rank()) return false;
  if (said.shape.rank() != is.rank()) return true;
  for (std::size_t i = 0; i < is.rank(); ++i)
    if (const auto extent = said.shape[i].evaluate(symbols); extent && *extent != is.dims()[i]) return true;
  return false;
}

}  // namespace

std::string misjudged(Runtime& runtime, const Model& model, const Feeds& feeds) {
  Model open = model;
  std::vector<const Value*> values;
  for (const auto& node : model.graph().nodes())
    for (const Value* value : node->outputs())
      if (value && value->type.is_tensor()) values.push_back(value);
  for (Value* output : open.graph().outputs()) output->type.shape = {};
  for (const Value* value : values) {
    Value* same = open.graph().find(value->name());
    if (!same->is_graph_output()) {
      open.graph().add_output(*same);
      same->type.shape = {};
    }
  }
  try {
    const auto session = open_session(runtime, open, {.threads = 1, .optimize = false});
    const auto names = session->outputs();
    const std::vector<Tensor> results = session->run(feeds);
    const auto symbols = symbols_of(model, feeds);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Value* value = model.graph().find(names[i].first);
      if (value && contradicts(value->type, results[i], symbols))
        return "'" + value->name() + "' is said to be " + value->shape().str() + " and is " +
               Shape::of(results[i].dims()).str();
    }
  } catch (const Error&) {
  }
  return "";
}

bool has_empty(const Feeds& feeds) {
  return std::ranges::any_of(feeds, [](const auto& feed) { return feed.second.elements() == 0; });
}

}  // namespace modelflow::obligations
