// An extent that is read off a view, or off the result of a linear layer, keeps both from being fused away. The value
// that they were made of has the same one.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "modelflow/shape_values.h"
#include "passes/clean/clean.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/strided_view.h"

namespace modelflow::passes {

namespace {

/// One axis of a value.
struct Place {
  Value* value;
  std::size_t axis;
};

/// The axis of the input of a view that is this axis of its result.
std::optional<std::size_t> axis_before(const Node& view, std::size_t axis) {
  const Shape& shape = view.input(0)->shape();
  StridedView seen(shape);
  if (!seen.follow(*view.output()) || axis >= seen.axes().size()) return {};
  return seen.source_axis(axis, shape);
}

/// A constant of one axis does not widen what it is added to, except perhaps along the last axis.
std::optional<std::size_t> other_than_vector(const Node& node) {
  for (const std::size_t i : {0, 1})
    if (node.input(i)->constant() && node.input(i)->constant()->rank() <= 1) return 1 - i;
  return {};
}

/// The same extent one node further back; nothing where it begins.
std::optional<Place> step(const Place& place) {
  const Node* node = place.value->producer();
  if (!node || !node->domain().empty() || &node->graph() != &place.value->graph()) return {};
  Value* x = node->input(0);
  const std::optional<std::size_t> rank = x ? rank_of(x) : std::nullopt;
  if (!rank || rank_of(place.value).value_or(0) <= place.axis) return {};
  const bool last = place.axis + 1 == rank_of(place.value);
  for (const char* op : {"Transpose", "Reshape", "Squeeze", "Unsqueeze"}) {
    if (!node->is(op)) continue;
    const std::optional<std::size_t> axis = axis_before(*node, place.axis);
    return axis ? std::optional(Place{x, *axis}) : std::nullopt;
  }
  if (node->is("MatMul") && !last && node->input(1)->constant() && node->input(1)->constant()->rank() == 2)
    return *rank >= 2 ? std::optional(Place{x, place.axis}) : std::nullopt;
  if (node->is("Add") && !last) {
    const std::optional<std::size_t> other = other_than_vector(*node);
    return other ? std::optional(Place{node->input(*other), place.axis}) : std::nullopt;
  }
  return {};
}

/// Gather of extents of a whole Shape: their places in order; none for other nodes.
std::vector<Place> read_extents(const Node& gather) {
  if (!gather.is("Gather") || gather.attrs.integer("axis") != 0 || !gather.input(0)) return {};
  const Node* shape = gather.input(0)->producer();
  const std::optional<Ints> index = const_ints(gather.input(1));
  if (!shape || !shape->is("Shape") || shape->attrs.has("start") || shape->attrs.has("end")) return {};
  if (!index || &shape->graph() != &gather.graph()) return {};
  const auto rank = static_cast<std::int64_t>(rank_of(shape->input(0)).value_or(0));
  const std::optional<Ints> axes = positive(*index, rank);
  std::vector<Place> places;
  for (const std::int64_t axis : axes.value_or(Ints{}))
    places.push_back({shape->input(0), static_cast<std::size_t>(axis)});
  return places;
}

/// The value furthest back that has all these extents, and where.
std::vector<Place> common_source(std::vector<Place> places) {
  std::vector<std::vector<Place>> paths;
  for (Place place : places) {
    paths.push_back({place});
    while (const std::optional<Place> before = step(paths.back().back())) paths.back().push_back(*before);
  }
  const auto on_path = [](const std::vector<Place>& path, const Value* value) {
    return std::find_if(path.begin(), path.end(), [&](const Place& place) { return place.value == value; });
  };
  for (const Place& source : paths.front()) {
    std::vector<Place> found;
    for (const auto& path : paths)
      if (const auto at = on_path(path, source.value); at != path.end()) found.push_back(*at);
    if (found.size() == paths.size()) places = std::move(found);
  }
  return places;
}

/// The input of the graph, and its axis, that has this extent for sure.
std::optional<Place> input_with(const Graph& graph, const Dim& extent) {
  for (Value* input : graph.inputs()) {
    if (!input->type.is_tensor() || !input->shape().has_rank()) continue;
    for (std::size_t axis = 0; axis < input->shape().rank(); ++axis)
      if (input->shape()[axis] == extent) return Place{input, axis};
  }
  return {};
}

/// True where nothing is gained by reading an extent elsewhere.
bool reads_input(const Node& node) {
  const Node* shape = node.input(0)->producer();
  return shape && shape->is("Shape") && shape->input(0) && shape->input(0)->is_graph_input();
}

/// Extents that are proved to be numbers or those of graph inputs: read there, one by one.
bool read_at_inputs(Node& node, const std::vector<Dim>& extents, Context& context) {
  Graph& graph = node.graph();
  const std::size_t rank = rank_of(node.output()).value_or(2);
  if (reads_input(node) || graph.parent() || node.output()->dtype() != DType::i64 || rank > 1) return false;
  std::vector<std::optional<Place>> sources;
  for (const Dim& extent : extents) {
    sources.push_back(input_with(graph, extent));
    if (!sources.back() && !extent.known()) return false;
  }
  Build build(graph, node, context);
  const auto constant = [&](std::int64_t v) -> Value& {
    return build.constant(rank == 0 ? Tensor::scalar<std::int64_t>(v) : tensor_of({v}), "extent");
  };
  std::vector<Value*> parts;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::optional<std::int64_t> number = extents[i].number();
    parts.push_back(number ? &constant(*number)
                           : &build.op("Gather", {&build.op("Shape", {sources[i]->value}),
                                                  &constant(static_cast<std::int64_t>(sources[i]->axis))}));
  }
  graph.replace(*node.output(), parts.size() == 1 ? *parts[0] : build.op("Concat", parts, {{"axis", std::int64_t{0}}}));
  graph.erase(node);
  context.hit("shape-of-input");
  return true;
}

bool read_at_source(Node& gather, Context& context) {
  const std::vector<Place> places = read_extents(gather);
  if (places.empty()) return false;
  const std::vector<Place> sources = common_source(places);
  if (sources[0].value == places[0].value) return false;
  Ints axes;
  for (const Place& source : sources) axes.push_back(static_cast<std::int64_t>(source.axis));
  Build build(gather.graph(), gather, context);
  const Tensor& index = *gather.input(1)->constant();
  Value& at = build.constant(tensor_of(axes).reshaped(index.dims()), "axis");
  Value& extent = build.op("Gather", {&build.op("Shape", {sources[0].value}), &at}, gather.attrs);
  gather.graph().replace(*gather.output(), extent);
  gather.graph().erase(gather);
  context.hit("shape-source");
  return true;
}

int run(Graph& graph, Context& context) {
  ShapeValues contents(context.model.ir_version);
  std::vector<std::pair<Node*, std::vector<Dim>>> reads;  // before any edit: contents are remembered by value
  for (const auto& node : graph.nodes()) {
    if (!node->is("Gather") && !node->is("Slice") && !node->is("Div")) continue;
    const std::vector<Dim>* extents = contents.of(node->output());
    reads.emplace_back(node.get(), extents ? *extents : std::vector<Dim>{});
  }
  int changes = 0;
  for (const auto& [node, extents] : reads) {
    const bool moved = node->is("Gather") && read_at_source(*node, context);
    changes += moved || (!extents.empty() && read_at_inputs(*node, extents, context));
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass shape_sources() {
  return {.name = "shape-sources",
          .doc = "Reads extents of a view or of a linear layer's result off the value that it was made of.",
          .run = run};
}

}  // namespace modelflow::passes
