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

/// Whether the extents beside the axis differ.
bool joins_unlike(const Node& concat, const std::map<std::string, Dims>& dims) {
  const Dims* first = nullptr;
  for (const Value* part : concat.inputs()) {
    const auto found = part ? dims.find(part->name()) : dims.end();
    if (found == dims.end()) continue;
    if (!first) first = &found->second;
    if (found->second.size() != first->size()) return true;
    auto axis = concat.attrs.integer("axis");
    if (axis < 0) axis += static_cast<std::int64_t>(first->size());
    for (std::size_t i = 0; i < first->size(); ++i)
      if (static_cast<std::int64_t>(i) != axis && (*first)[i] != found->second[i]) return true;
  }
  return false;
}

}  // namespace

Said misjudged(Runtime& runtime, const Model& model, const Feeds& feeds) {
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
  Said said;
  try {
    const auto session = open_session(runtime, open, {.threads = 1, .optimize = false});
    const auto names = session->outputs();
    const std::vector<Tensor> results = session->run(feeds);
    std::map<std::string, Dims> dims;
    for (const auto& [name, tensor] : feeds) dims[name] = tensor.dims();
    for (const Value* value : model.graph().initializers())
      dims.try_emplace(value->name(), value->initializer()->dims());
    const auto symbols = symbols_of(model, feeds);
    for (std::size_t i = 0; i < results.size(); ++i) {
      dims[names[i].first] = results[i].dims();
      const Value* value = model.graph().find(names[i].first);
      if (said.otherwise.empty() && value && contradicts(value->type, results[i], symbols))
        said.otherwise = "'" + value->name() + "' is said to be " + value->shape().str() + " and is " +
                         Shape::of(results[i].dims()).str();
    }
    said.joins_nothing = std::ranges::any_of(
        model.graph().nodes(), [&](const auto& node) { return node->is("Concat") && joins_unlike(*node, dims); });
  } catch (const Error&) {
  }
  return said;
}

bool has_empty(const Feeds& feeds) {
  return std::ranges::any_of(feeds, [](const auto& feed) { return feed.second.elements() == 0; });
}

}  // namespace modelflow::obligations
