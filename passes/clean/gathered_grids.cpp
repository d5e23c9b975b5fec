// Gathering by a grid of indices that counts along whole axes of the data gives all of it back, in another order.
// Exporters write it where PyTorch indexes a mask by positions of batches and keys (transformers' masks): GatherND by
// one column of indices for each axis, or Gather from the flat data by `row * columns + column`; F.unfold along one
// axis ends in a Gather from an axis of extent 1.
#include <algorithm>

#include "modelflow/modelflow.h"
#include "passes/clean/clean.h"
#include "passes/clean/counting.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

/// Which axis of the data every axis of the grid counts along; none: it has extent 1.
using Shown = std::vector<std::optional<std::size_t>>;

/// A whole axis of the data, by steps of `step` along an axis of the grid of the same extent.
bool place(const Steps& steps, const Dim& step, const Shape& grid, const Shape& data, std::size_t axis, Shown& shown) {
  if (data[axis].number() == 1) return true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (shown[i] || !(steps[i] == step) || !(grid[i] == data[axis])) continue;
    shown[i] = axis;
    return true;
  }
  return false;
}

/// All other axes of the grid have extent 1.
bool whole(const Shown& shown, const Shape& grid) {
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (!shown[i] && grid[i].number() != 1) return false;
  return true;
}

/// What indexes the data, its axes from the first on, and by which grid.
struct Grid {
  Value* data = nullptr;
  Shown shown;
  std::size_t indexed = 0;  ///< axes of the data
  std::size_t behind = 0;   ///< axes of extent 1 behind all
};

/// Column `k` of constant indices.
std::optional<Steps> column_of(const Tensor& indices, std::size_t k) {
  Dims grid = indices.dims();
  const auto columns = static_cast<std::size_t>(grid.back());
  grid.pop_back();
  const Ints all = indices.to_ints();
  Ints column;
  for (std::size_t i = k; i < all.size(); i += columns) column.push_back(all[i]);
  return steps_of(column, grid);
}

/// The same of the result of a Concat.
std::optional<Steps> column_of(const Node& concat, std::size_t k, Counting& counting) {
  const auto rank = static_cast<std::int64_t>(rank_of(concat.output()).value_or(0));
  if (positive({concat.attrs.integer("axis")}, rank) != Ints{rank - 1} || k >= concat.inputs().size()) return {};
  const Value& column = *concat.input(k);
  std::optional<Steps> steps;
  if (column.shape().has_rank() && column.shape().back().number() == 1) steps = counting.of(column);
  if (!steps || steps->size() != static_cast<std::size_t>(rank)) return {};
  steps->pop_back();
  return steps;
}

std::optional<Grid> read_columns(const Node& gather, Counting& counting) {
  const Value& indices = *gather.input(1);
  const Shape &data = gather.input(0)->shape(), &grid = indices.shape();
  if (gather.attrs.integer("batch_dims") != 0 || !data.has_rank() || !grid.has_rank() || grid.rank() == 0) return {};
  Grid found{gather.input(0), Shown(grid.rank() - 1), 0, 0};
  const std::int64_t columns = grid.back().number().value_or(0);
  if (columns < 1 || static_cast<std::size_t>(columns) > data.rank()) return {};
  found.indexed = static_cast<std::size_t>(columns);
  const Node* concat = indices.producer();
  for (std::size_t k = 0; k < found.indexed; ++k) {
    std::optional<Steps> steps;
    if (indices.constant()) {
      steps = column_of(*indices.constant(), k);
    } else if (concat && concat->is("Concat")) {
      if (concat->inputs().size() != found.indexed) return {};
      steps = column_of(*concat, k, counting);
    } else if (columns == 1) {
      steps = counting.of(indices);
      if (steps) steps->pop_back();
    }
    if (!steps || steps->size() != found.shown.size()) return {};
    // All indices are 0 along other axes, else they would leave this one.
    if (std::ranges::count_if(*steps, [](const Dim& step) { return step.number() != 0; }) >
        (data[k].number() == 1 ? 0 : 1))
      return {};
    if (!place(*steps, 1, grid, data, k, found.shown)) return {};
  }
  return whole(found.shown, grid) ? std::optional(found) : std::nullopt;
}

/// Gather from all elements in a row.
std::optional<Grid> read_flat(const Node& gather, Counting& counting) {
  const Node* flat = gather.input(0)->producer();
  const Shape &row = gather.input(0)->shape(), &grid = gather.input(1)->shape();
  if (gather.attrs.integer("axis") != 0 || !flat || !(flat->is("Reshape") || flat->is("Flatten"))) return {};
  const Shape& data = flat->input(0)->shape();
  if (!data.has_rank() || !row.has_rank() || !grid.has_rank() || data.rank() < 2) return {};
  if (row.rank() == 0 || row.rank() > 2 || (row.rank() == 2 && row[1].number() != 1)) return {};
  const std::optional<Steps> steps = counting.of(*gather.input(1));
  if (!steps || steps->size() != grid.rank()) return {};
  Grid found{flat->input(0), Shown(grid.rank()), data.rank(), row.rank() - 1};
  Dim step = 1;
  for (std::size_t axis = data.rank(); axis-- > 0; step = step * data[axis])
    if (!place(*steps, step, grid, data, axis, found.shown)) return {};
  // What counts beside the axes of the data would leave it.
  for (std::size_t i = 0; i < steps->size(); ++i)
    if (!found.shown[i] && (*steps)[i].number() != 0) return {};
  return whole(found.shown, grid) ? std::optional(found) : std::nullopt;
}

/// The data in the order of the grid, axes of extent 1 between them.
bool arrange(Node& gather, Grid grid, Context& context) {
  const Shape& data = grid.data->shape();
  Ints perm, added;
  std::size_t single = 0;  // of the data, shown by axes of the grid that have extent 1
  const auto is_shown = [&](std::size_t axis) {
    return std::ranges::find(grid.shown, std::optional(axis)) != grid.shown.end();
  };
  for (std::size_t i = 0; i < grid.shown.size(); ++i) {
    while (single < grid.indexed && is_shown(single)) ++single;
    if (!grid.shown[i] && single < grid.indexed) grid.shown[i] = single;
    if (grid.shown[i])
      perm.push_back(static_cast<std::int64_t>(*grid.shown[i]));
    else
      added.push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t axis = grid.indexed; axis < data.rank(); ++axis) perm.push_back(static_cast<std::int64_t>(axis));
  if (perm.size() != data.rank()) return false;
  for (std::size_t i = 0; i < grid.behind; ++i) added.push_back(static_cast<std::int64_t>(grid.shown.size() + i));
  Build build(gather.graph(), gather, context);
  if (!std::ranges::is_sorted(perm)) grid.data = &build.op("Transpose", {grid.data}, {{"perm", perm}});
  if (!added.empty()) grid.data = &with_axes(build, "Unsqueeze", *grid.data, added);
  if (build.made().empty()) grid.data = &build.op("Identity", {grid.data});
  gather.graph().replace(*gather.output(), *grid.data);
  gather.graph().erase(gather);
  context.hit("gathered-grid");
  return true;
}

/// All of one axis in its order, by constant indices: with axes of extent 1 around it where these have such, without it
/// where it holds one element that a scalar picks.
bool drop_whole_axis(Node& gather, Context& context) {
  const Shape& data = gather.input(0)->shape();
  const Tensor* indices = gather.input(1)->constant();
  if (!gather.is("Gather") || !indices || !data.has_rank() || data.rank() == 0) return false;
  const auto axis = positive({gather.attrs.integer("axis")}, std::ssize(data.dims()));
  const std::int64_t count = indices->elements();
  if (!axis || data[static_cast<std::size_t>(axis->front())].number() != count) return false;
  const Ints places = indices->to_ints();
  for (std::int64_t i = 0; i < count; ++i)
    if (const std::int64_t at = places[static_cast<std::size_t>(i)]; at != i && at != i - count) return false;
  const Dims& grid = indices->dims();
  const auto along = std::ranges::find_if(grid, [](std::int64_t n) { return n != 1; });
  const auto kept = std::min(along - grid.begin(), std::ssize(grid) - 1);
  Ints added;
  for (std::ptrdiff_t i = 0; i < std::ssize(grid); ++i)
    if (i != kept && grid[static_cast<std::size_t>(i)] == 1) added.push_back(axis->front() + i);
  if (std::ssize(added) + 1 < std::ssize(grid)) return false;  // more than one axis for the elements
  Build build(gather.graph(), gather, context);
  Value& all = grid.empty()    ? with_axes(build, "Squeeze", *gather.input(0), *axis)
               : added.empty() ? build.op("Identity", {gather.input(0)})
                               : with_axes(build, "Unsqueeze", *gather.input(0), added);
  gather.graph().replace(*gather.output(), all);
  gather.graph().erase(gather);
  context.hit("gathered-axis");
  return true;
}

/// Places along the first axis alone, as PyTorch's dynamo exporter writes x[:, [3]] behind a Transpose: Gather says so.
bool index_first_axis(Node& gather, Context& context) {
  const Tensor* indices = gather.input(1)->constant();
  if (!gather.is("GatherND") || gather.attrs.integer("batch_dims") != 0 || !indices) return false;
  Dims places = indices->dims();
  const Shape& data = gather.input(0)->shape();
  if (places.empty() || places.back() != 1 || !data.has_rank() || data.rank() == 0 || !data[0].known()) return false;
  const Ints all = indices->to_ints();
  const auto inside = [&](std::int64_t at) { return at >= -data[0].value() && at < data[0].value(); };
  if (!std::ranges::all_of(all, inside)) return false;  // GatherND does not look where there is nothing to gather
  places.pop_back();
  Build build(gather.graph(), gather, context);
  Value& along = build.constant(indices->reshaped(places), "places");
  gather.graph().replace(*gather.output(), build.op("Gather", {gather.input(0), &along}));
  gather.graph().erase(gather);
  context.hit("gathered-places");
  return true;
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  for (Node* node : nodes_of(graph, {"GatherND", "Gather"})) {
    if (drop_whole_axis(*node, context)) {
      ++changes;
      continue;
    }
    Counting counting(context);
    const std::optional<Grid> grid = node->is("Gather") ? read_flat(*node, counting) : read_columns(*node, counting);
    changes += (grid && arrange(*node, *grid, context)) || index_first_axis(*node, context);
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass gathered_grids() {
  return {
      .name = "gathered-grids",
      .doc =
          "Gather and GatherND by indices that count along whole axes of the data -> Transpose, Unsqueeze; GatherND "
          "from the first axis -> Gather",
      .run = run};
}

}  // namespace modelflow::passes
