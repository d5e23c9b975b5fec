// Fused nodes that channels-last values join, as regions.
#include "src/measure/regions.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>

namespace modelflow {
namespace {

bool is_fused(const Node& node) { return node.domain() == kDomain; }

/// Disjoint sets of nodes.
class Groups {
 public:
  const Node* find(const Node* node) {
    const Node*& up = up_.try_emplace(node, node).first->second;
    return up == node ? node : up = find(up);
  }
  void join(const Node* a, const Node* b) { up_[find(a)] = find(b); }

 private:
  std::unordered_map<const Node*, const Node*> up_;
};

bool reads_channels_last(const Use& use) {
  const Attrs& attrs = use.node->attrs;
  return is_fused(*use.node) && attrs.text(attrs.has("x_layout") ? "x_layout" : "layout") == "NHWC";
}

bool is_transpose(const Node& node) {
  return node.is("Transpose") || (is_fused(node) && kind_of(node.op(), node.attrs) == "Transpose");
}

/// A transpose at the border of an island. Its permutation alone says nothing: attention transposes keys the same way.
bool moves_channels_last(const Node& node) {
  return is_transpose(node) &&
         std::any_of(node.output()->uses().begin(), node.output()->uses().end(), reads_channels_last);
}

/// What these make has axes of its own: an image ends where it is flattened, multiplied as rows or picked from. With
/// them the rest of a detector would be one region with its backbone, TopK between them, and never equal on its own.
bool ends_image(const Node& node) {
  static constexpr std::array kOps = std::to_array<std::string_view>(
      {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "MatMul", "Gemm", "Einsum", "Gather", "GatherElements", "GatherND",
       "TopK", "NonZero", "Shape", "Size"});
  return is_transpose(node) || (node.domain().empty() && std::ranges::find(kOps, node.op()) != kOps.end());
}

/// The values in channels-last order: what fused nodes write so, what border transposes make, and what other nodes make
/// of such values.
std::set<const Value*> channels_last(const Graph& graph) {
  std::set<const Value*> found;
  for (const auto& node : graph.nodes()) {
    bool last = moves_channels_last(*node);
    const char* const attribute = node->attrs.has("y_layout") ? "y_layout" : "layout";
    if (is_fused(*node) && node->attrs.has(attribute))
      last = node->attrs.text(attribute) == "NHWC";
    else if (!ends_image(*node))
      last = std::any_of(node->inputs().begin(), node->inputs().end(),
                         [&](const Value* input) { return found.contains(input); });
    for (const Value* output : node->outputs())
      if (last && output) found.insert(output);
  }
  return found;
}

/// Symbols that the graph's inputs do not have are names that inference made up: alike for our purpose.
std::string shown(const Shape& shape, const std::set<std::string>& declared) {
  if (!shape.has_rank()) return "[...]";
  std::string text;
  for (const Dim& dim : shape.dims()) {
    const auto symbols = dim.symbols();
    const bool made_up =
        std::any_of(symbols.begin(), symbols.end(), [&](const auto& s) { return !declared.contains(s); });
    text += (made_up ? "?" : dim.str()) + ",";
  }
  return text;
}

std::string signature(const Node& node, const std::set<std::string>& declared) {
  std::ostringstream text;
  text << node.op();
  for (const auto& [name, attr] : node.attrs) {
    text << ' ' << name << '=';
    if (const auto* integer = std::get_if<std::int64_t>(&attr)) text << *integer;
    if (const auto* number = std::get_if<float>(&attr)) text << *number;
    if (const auto* string = std::get_if<std::string>(&attr)) text << *string;
    if (const auto* ints = std::get_if<Ints>(&attr))
      for (const std::int64_t i : *ints) text << i << ',';
  }
  for (const Value* input : node.inputs())
    text << ' ' << (input ? shown(input->shape(), declared) : "-") << (input && input->constant() ? "!" : "");
  return text.str();
}

}  // namespace

std::vector<Region> find_regions(const Model& model) {
  const Graph& graph = model.graph();
  std::set<std::string> declared;
  for (const Value* input : graph.inputs())
    for (std::size_t axis = 0; input->shape().has_rank() && axis < input->shape().rank(); ++axis)
      for (const std::string& symbol : input->shape()[axis].symbols()) declared.insert(symbol);
  Groups groups;
  for (const Value* value : channels_last(graph))
    for (const Use& use : value->uses())
      if (value->producer() && &use.node->graph() == &graph) groups.join(value->producer(), use.node);
  std::vector<const Node*> order;  // of first appearance
  std::map<const Node*, Region> by_root;
  for (const auto& node : graph.nodes()) {
    const Node* root = groups.find(node.get());
    if (by_root[root].nodes.empty()) order.push_back(root);
    by_root[root].nodes.push_back(node.get());
    if (is_fused(*node)) by_root[root].fused.push_back(node->name);
  }
  std::vector<Region> regions;
  std::map<std::string, std::size_t> alike;
  for (const Node* root : order) {
    Region& region = by_root[root];
    if (region.fused.empty()) continue;
    region.name = region.fused.front();
    if (region.nodes.size() == 1) {
      const auto [place, fresh] = alike.try_emplace(signature(*region.nodes.front(), declared), regions.size());
      if (!fresh) {
        Region& first = regions[place->second];
        ++first.copies;
        first.fused.push_back(region.fused.front());
        continue;
      }
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

std::vector<const Node*> slice(const Model& model, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs) {
  const Graph& graph = model.graph();
  const std::set<std::string> stop(inputs.begin(), inputs.end());
  std::set<const Node*> inside;
  std::vector<const Value*> todo;
  for (const std::string& name : outputs) todo.push_back(graph.find(name));
  while (!todo.empty()) {
    const Value* value = todo.back();
    todo.pop_back();
    if (!value) return {};
    if (value->constant() || stop.contains(value->name())) continue;
    const Node* node = value->producer();
    if (!node || !node->subgraphs().empty()) return {};
    if (!inside.insert(node).second) continue;
    for (const Value* input : node->inputs())
      if (input) todo.push_back(input);
  }
  std::vector<const Node*> nodes;
  for (const auto& node : graph.nodes())
    if (inside.contains(node.get())) nodes.push_back(node.get());
  return nodes;
}

}  // namespace modelflow
