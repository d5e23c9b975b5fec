// Rows that are written into a blank tensor one after the other, as exporters write `y[:, t] = row` in a loop that they
// have written out: each of these nodes copies all the others -> Concat.
#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "modelflow/pass.h"
#include "passes/graph/edits.h"
#include "passes/graph/facts.h"
#include "passes/graph/strided_view.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {
namespace {

constexpr const char* kRule = "scattered-rows";

/// One node: all of data's elements at place `at` of the axis are those of `update`, which has extent 1 there.
struct Row {
  Value *data = nullptr, *update = nullptr;
  std::size_t axis = 0;
  std::int64_t at = 0;
};

/// An index of ScatterND along one axis of the data: the number that it is everywhere, or its own place there.
struct Index {
  std::optional<double> number;
  bool is_place = false;
};

/// Whether the value counts 0, 1, 2, ... along this axis, where all others have extent 1.
bool counts_along(const Value& value, std::size_t axis) {
  std::vector<const Value*> chain;
  const Value* source = &value;
  for (; source->producer() && is_view(*source->producer()); source = source->producer()->input(0))
    chain.push_back(source);
  const Node* range = made_by(source, "Range");
  if (!range || const_number(range->input(0)) != 0.0 || const_number(range->input(2)) != 1.0) return false;
  StridedView view(source->shape());
  for (auto step = chain.rbegin(); step != chain.rend(); ++step)
    if (!view.follow(**step)) return false;
  for (std::size_t i = 0; i < view.axes().size(); ++i)
    if (i == axis ? view.source_axis(i, source->shape()) != std::optional<std::size_t>(0) : !view.axes()[i].empty())
      return false;
  return axis < view.axes().size();
}

/// Indices of a constant: [..., k] with `k` numbers for each place of the axes in front.
std::vector<Index> constant_indices(const Ints& numbers, const Dims& dims) {
  const auto k = static_cast<std::size_t>(dims.back());
  std::vector<Index> found(k);
  for (std::size_t j = 0; j < k; ++j) {
    const auto inner = static_cast<std::size_t>(std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(j) + 1,
                                                                dims.end() - 1, std::int64_t{1}, std::multiplies<>()));
    bool same = true, places = true;
    for (std::size_t i = 0; i * k < numbers.size(); ++i) {
      same = same && numbers[i * k + j] == numbers[j];
      places = places && numbers[i * k + j] == static_cast<std::int64_t>(i / inner) % dims[j];
    }
    found[j].is_place = places;
    if (same) found[j].number = static_cast<double>(numbers[j]);
  }
  return found;
}

std::vector<Index> read_indices(const Value& indices) {
  const Shape& shape = indices.shape();
  if (const std::optional<Ints> numbers = const_ints(&indices); numbers && !numbers->empty())
    return constant_indices(*numbers, indices.constant()->dims());
  const Node* joined = made_by(&indices, "Concat");
  std::vector<const Value*> parts = {&indices};
  if (joined &&
      positive({joined->attrs.integer("axis")}, std::ssize(shape.dims())) == Ints{std::ssize(shape.dims()) - 1})
    parts.assign(joined->inputs().begin(), joined->inputs().end());
  std::vector<Index> found;
  for (std::size_t j = 0; j < parts.size(); ++j) {
    if (parts[j]->shape().back().number() != 1) return {};
    found.push_back({fill_of(*parts[j]), counts_along(*parts[j], j)});
  }
  return found;
}

/// The axis along which one row is written, by an index that is the same everywhere; the others are written whole.
bool read_places(Row& row, const Value& indices) {
  const Shape &shape = indices.shape(), &data = row.data->shape();
  if (!shape.has_rank() || shape.rank() < 2 || shape.rank() - 1 > data.rank()) return false;
  if (shape.back().number() != std::ssize(shape.dims()) - 1) return false;
  const std::vector<Index> found = read_indices(indices);
  if (found.size() != shape.rank() - 1) return false;
  std::size_t rows = 0;
  for (std::size_t j = 0; j < found.size(); ++j) {
    const bool whole = shape[j] == data[j] && (found[j].is_place || (data[j].number() == 1 && found[j].number == 0.0));
    if (whole) continue;
    if (!found[j].number || shape[j].number() != 1) return false;
    row.axis = j;
    row.at = static_cast<std::int64_t>(*found[j].number);
    ++rows;
  }
  return rows == 1;
}

/// The extents of a row: those of the data, and 1 along the axis.
Shape shape_of(const Row& row) {
  std::vector<Dim> dims = row.data->shape().dims();
  dims[row.axis] = 1;
  return dims;
}

std::optional<Row> read_row(const Node& node) {
  if (node.inputs().size() != 3 || node.attrs.text("reduction", "none") != "none") return {};
  Row row{node.input(0), node.input(2)};
  const Value& indices = *node.input(1);
  const Shape &data = row.data->shape(), &update = row.update->shape();
  if (row.data->dtype() != DType::f32 || !data.has_rank() || !update.has_rank() || update.rank() != data.rank())
    return {};
  if (node.is("ScatterElements")) {
    const std::optional<Ints> axis = positive({node.attrs.integer("axis")}, std::ssize(data.dims()));
    const std::optional<double> at = fill_of(indices);
    if (!axis || !at) return {};
    row.axis = static_cast<std::size_t>(axis->front());
    row.at = static_cast<std::int64_t>(*at);
    if (indices.shape() != update) return {};
  } else if (!read_places(row, indices)) {
    return {};
  }
  return update == shape_of(row) ? std::optional(row) : std::nullopt;
}

/// Rows 0, 1, ... of a blank tensor, the last one first.
struct Rows {
  std::vector<Row> rows;
  std::vector<const Node*> nodes;
  double blank = 0;

  Verdict read(const Node& last) {
    const Node* node = &last;
    for (std::optional<Row> row = read_row(last); row; row = node ? read_row(*node) : std::nullopt) {
      if (!rows.empty() && (row->axis != rows.front().axis || row->at != rows.back().at - 1))
        return no("rows are not written one behind the other");
      rows.push_back(*row);
      nodes.push_back(node);
      if (row->at == 0) break;
      if (row->data->uses().size() != 1 || row->data->is_graph_output()) return no("is read between two rows");
      node = row->data->producer();
      if (node && !node->is("ScatterElements") && !node->is("ScatterND")) node = nullptr;
    }
    if (rows.size() < 2 || rows.back().at != 0) return no("");
    constexpr std::int64_t kMostRows = 1LL << 32;  // of an empty tensor there may be more than Pad counts
    if (last.output()->shape().has_rank() && last.output()->shape()[rows.front().axis].number() > kMostRows)
      return no("has too many rows");
    const std::optional<double> filled = fill_of(*rows.back().data);
    if (!filled) return no("is not known to be blank", rows.back().data->name());
    blank = *filled;
    return yes();
  }
};

/// Blank rows behind those that were written, where there may be some.
Value& padded(Build& build, Value& rows, const Rows& found) {
  Value& data = *found.rows.back().data;
  const auto axis = static_cast<std::int64_t>(found.rows.front().axis), rank = std::ssize(data.shape().dims());
  const auto count = std::ssize(found.rows);
  if (data.shape()[static_cast<std::size_t>(axis)].number() == count) return rows;
  Value& extents = build.op("Shape", {&data});
  Value& extent =
      build.op("Gather", {&extents, &build.constant(tensor_of({axis}), "axis")}, {{"axis", std::int64_t{0}}});
  Value& more = build.op("Sub", {&extent, &build.constant(tensor_of({count}), "rows")});
  std::vector<Value*> pads = {&build.constant(tensor_of(Ints(static_cast<std::size_t>(rank + axis), 0)), "pads"),
                              &more};
  if (axis + 1 < rank)
    pads.push_back(&build.constant(tensor_of(Ints(static_cast<std::size_t>(rank - axis - 1), 0)), "pads"));
  Value& all = build.op("Concat", pads, {{"axis", std::int64_t{0}}});
  return build.op("Pad", {&rows, &all, &build.constant(Tensor::scalar(static_cast<float>(found.blank)), "blank")});
}

int run(Graph& graph, Context& context) {
  int changes = 0;
  std::vector<Node*> nodes = nodes_of(graph, {"ScatterElements", "ScatterND"});
  if (context.model.opset() < 13) return 0;
  std::unordered_set<const Node*> done;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (done.contains(*node)) continue;
    Rows found;
    if (const Verdict verdict = found.read(**node); !verdict) {
      if (!verdict.reason.empty()) context.miss(kRule, *node, verdict.reason);
      continue;
    }
    done.insert(found.nodes.begin(), found.nodes.end());
    Build build(graph, **node, context);
    std::vector<Value*> updates;
    for (auto row = found.rows.rbegin(); row != found.rows.rend(); ++row) updates.push_back(row->update);
    Value& rows = build.op("Concat", updates, {{"axis", static_cast<std::int64_t>(found.rows.front().axis)}});
    graph.replace(*(*node)->output(), padded(build, rows, found));
    context.hit(kRule);
    ++changes;
  }
  if (changes) graph.prune();
  return changes;
}

}  // namespace

Pass scattered_rows() {
  return {
      .name = "scattered-rows",
      .doc = "Scatter of all rows of a blank tensor, one behind the other -> Concat (and Pad where there may be more)",
      .run = run};
}

}  // namespace modelflow::passes
