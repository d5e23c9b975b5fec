// What follows the product with the values and only moves its elements becomes the layout of the result.
#include "passes/fuse/attention_result.h"

#include <algorithm>

#include "modelflow/pattern.h"
#include "passes/graph/extents.h"
#include "passes/graph/facts.h"
#include "passes/graph/strided_view.h"

namespace modelflow::passes {
namespace {

using Form = Continuation::Form;

/// All of these axes of the source, one after the other, where their extent is not 1.
bool is(const StridedView::Axis& runs, const Shape& source, const std::vector<std::size_t>& axes) {
  std::size_t next = 0;
  for (const std::size_t axis : axes) {
    if (source[axis].number() == 1) continue;
    if (next == runs.size() || runs[next].axis != axis || runs[next].stride.number() != 1) return false;
    if (!(runs[next++].extent == source[axis])) return false;
  }
  return next == runs.size();
}

std::optional<Form> form_of(const std::vector<StridedView::Axis>& axes, const Shape& source) {
  const auto match = [&](const std::vector<std::vector<std::size_t>>& wanted) {
    if (wanted.size() != axes.size()) return false;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (!is(axes[i], source, wanted[i])) return false;
    return true;
  };
  if (match({{0}, {2}, {1, 3}})) return Form::bsh;
  if (match({{0, 2}, {1, 3}})) return Form::rows;
  if (match({{0}, {2}, {1}, {3}})) return Form::bsnd;
  if (axes.size() >
      4) {  // with axes of extent 1 among heads and size, as the windows of a single one leave them (Hiera)
    std::vector<StridedView::Axis> fewer = axes;
    const auto unit = std::find_if(fewer.begin() + 2, fewer.end(), [](const auto& runs) { return runs.empty(); });
    if (unit == fewer.end()) return {};
    fewer.erase(unit);
    const std::optional<Form> form = form_of(fewer, source);
    return form == Form::bsnd ? form : std::nullopt;
  }
  if (match({{2}, {0}, {1, 3}})) return Form::sbh;
  if (match({{2, 0}, {1, 3}})) return Form::sequence_rows;
  if (match({{0}, {1}, {2}, {3}})) return Form::bnsh;
  if (match({{0}, {1}, {3}, {2}})) return Form::bnhs;
  if (match({{0}, {1, 3}, {2}})) return Form::bhs;
  return {};
}

/// How few nodes a form leaves behind.
int rank(Form form) {
  switch (form) {
    case Form::bsh:
      return 5;
    case Form::rows:
      return 4;
    case Form::bsnd:
      return 3;
    case Form::sbh:
    case Form::sequence_rows:
    case Form::bhs:
      return 2;
    case Form::bnsh:
      return 1;
    case Form::bnhs:
      return 0;
  }
  return 0;
}

/// [batch, heads, sequence, size] of a product of rank 3 to 5. A graph output may call its extents what it likes.
std::optional<Shape> source_of(const Value& context, std::int64_t heads, bool turned) {
  if (!context.type.is_tensor() || !context.shape().has_rank()) return {};
  std::vector<Dim> dims = context.shape().dims();
  if (dims.size() == 5) dims[1] = dims[0] * dims[1], dims.erase(dims.begin());
  if (dims.size() == 3) dims.insert(dims.begin() + 1, Dim(heads)), dims[0] = dims[0].divided_by(Dim(heads));
  if (dims.size() != 4 || (dims[1].known() && dims[1].number() != heads)) return {};
  dims[1] = Dim(heads);
  if (turned) std::swap(dims[2], dims[3]);
  for (std::size_t i = 0; i < 4; ++i)
    if (dims[i].unknown()) dims[i] = Dim::symbol("extent of axis " + std::to_string(i));
  return Shape(std::move(dims));
}

}  // namespace

std::optional<Continuation> read_continuation(Value& context, std::int64_t heads, bool turned) {
  const std::optional<Shape> source = source_of(context, heads, turned);
  if (!source) return {};
  StridedView view(*source);
  if (turned && !view.transpose({0, 1, 3, 2})) return {};
  if (context.shape().rank() != 4 && !view.reshape(context.shape())) return {};
  std::optional<Continuation> best;
  for (Value* value = &context;;) {
    std::optional<Form> form = form_of(view.joined_axes(false), *source);
    const bool windows = !form && context.shape().rank() == 5 && open_target(value->shape(), 1);
    if (windows) form = form_of(view.joined_axes(true), *source);
    const bool sized =
        (*source)[3].known() || form == Form::bsh || form == Form::bhs || form == Form::bnsh || form == Form::bnhs;
    if (form && sized && (!best || rank(*form) >= rank(best->form))) best = {value, *form, windows};
    Node* reader = only_reader(*value);
    if (!reader || reader->input(0) != value || reader->outputs().size() != 1 || !view.follow(*reader->output()))
      return best;
    value = reader->output();
  }
}

Value& continue_to(const Continuation& to, Value& result, std::int64_t heads, Node& before, Context& context) {
  Build build(before.graph(), before, context);
  Value* value = &result;
  const auto reshape = [&](const Ints& target) {
    value = &build.op("Reshape", {value, &build.constant(tensor_of(target), "shape")});
  };
  if (to.form == Form::sbh || to.form == Form::sequence_rows)
    value = &build.op("Transpose", {value}, {{"perm", Ints{1, 0, 2}}});
  if (to.form == Form::bhs) value = &build.op("Transpose", {value}, {{"perm", Ints{0, 2, 1}}});
  if (to.form == Form::bnhs) value = &build.op("Transpose", {value}, {{"perm", Ints{0, 1, 3, 2}}});
  if (to.windows) {
    reshape(*open_target(to.end->shape(), 1));
    return *value;
  }
  if (to.form == Form::bsnd) {
    Ints target = {0, 0};
    const Shape& end = to.end->shape();
    for (std::size_t i = 2; i < end.rank(); ++i)
      target.push_back((i == 2 && end.rank() == 4) || !end[i].known() ? heads : end[i].value());
    reshape(target);
  }
  if (to.form == Form::rows || to.form == Form::sequence_rows) reshape({-1, to.end->shape()[1].value()});
  return *value;
}

}  // namespace modelflow::passes
