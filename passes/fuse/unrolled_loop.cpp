// Reads written out loops: columns of values, one for each step, are followed backwards from the results as long as
// every step computes them alike. Where the first step stands apart a state begins.
#include "passes/fuse/unrolled_loop.h"

#include <algorithm>

#include "passes/fuse/program.h"
#include "passes/graph/facts.h"
#include "passes/graph/strided_view.h"

namespace modelflow::passes {
namespace {

constexpr std::size_t kMostSteps = 1 << 12, kMostLinesOfAStep = 32, kMostStates = 7;

/// Which row of `source` the value is, and along which axis.
struct RowOf {
  Value* source;
  std::size_t axis;
  std::int64_t at;
};

bool moves(const Node& node) {
  return is_view(node) || node.is("Gather") || node.is("Slice") || node.is("Split") || node.is("Identity");
}

/// A row of a value that it is picked from, where all other axes are whole and in their order.
std::optional<RowOf> row_in(const Value& value, Value& source, const std::vector<const Value*>& way) {
  const Shape& shape = source.shape();
  if (!shape.has_rank()) return {};
  StridedView view(shape);
  for (auto step = way.rbegin(); step != way.rend(); ++step)
    if (!view.follow(**step)) return {};
  std::vector<std::size_t> left;  // axes of the source that are more than one element long
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (shape[i].number() != 1) left.push_back(i);
  auto next = left.begin();
  std::optional<std::size_t> time;
  for (std::size_t i = 0; i < view.axes().size(); ++i) {
    if (view.axes()[i].empty()) continue;
    const std::optional<std::size_t> axis = view.source_axis(i, shape);
    if (axis && next != left.end() && *next != *axis && !time) time = *next++;
    if (!axis || next == left.end() || *next != *axis) return {};
    ++next;
  }
  if (!time && next != left.end()) time = *next++;
  if (!time || next != left.end() || !view.offset(*time).known() || !value.shape().has_rank()) return {};
  return RowOf{&source, *time, view.offset(*time).value()};
}

/// The nearest value that this is a row of; with `wanted` a row of that one.
std::optional<RowOf> row_of(const Value& value, const Value* wanted = nullptr) {
  std::vector<const Value*> way;
  for (const Value* at = &value; at->producer() && moves(*at->producer()); at = at->producer()->input(0)) {
    way.push_back(at);
    Value* source = at->producer()->input(0);
    if (wanted && source != wanted) continue;
    if (const std::optional<RowOf> row = row_in(value, *source, way); row || wanted) return row;
  }
  return {};
}

/// Steps that have a value.
std::ptrdiff_t known(const Column& column) { return std::ranges::find(column, nullptr) - column.begin(); }

/// The same values, as far as both have them.
bool alike(const Column& a, const Column& b) {
  return std::equal(a.begin(), a.begin() + std::min(known(a), known(b)), b.begin());
}

/// `before` is what `column` was one step earlier.
bool is_behind(const Column& column, const Column& before) {
  return std::equal(before.begin() + 1, before.begin() + std::min(known(before), known(column) + 1), column.begin());
}

}  // namespace

Verdict UnrolledLoop::read(const Column& results) {
  if (results.size() > kMostSteps) return no("has too many steps");
  const std::optional<Operand> root = read_line(results);
  if (!root) return no(why_);
  for (std::size_t i = 0; i < open_.size(); ++i) {
    Column next(states_[open_[i]].before.begin() + 1, states_[open_[i]].before.end());
    next.push_back(nullptr);
    const std::optional<Operand> line = read_column(next);
    if (!line) return no(why_);
    if (line->kind != Kind::line) return no("a state is no result of the step before");
    states_[open_[i]].next = line->index;
  }
  if (states_.empty() || sequences_.empty()) return no("no state passes from step to step beside sequences");
  complete();
  return yes();
}

std::optional<UnrolledLoop::Operand> UnrolledLoop::find(const Column& column) {
  for (std::size_t i = 0; i < lines_.size(); ++i)
    if (alike(lines_[i].column, column)) return Operand{Kind::line, i};
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (alike(states_[i].before, column)) return Operand{Kind::state, i};
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!is_behind(lines_[i].column, column)) continue;
    states_.push_back({column, i});
    return Operand{Kind::state, states_.size() - 1};
  }
  return {};
}

std::optional<UnrolledLoop::Operand> UnrolledLoop::read_column(const Column& column) {
  if (known(column) < 2) {
    why_ = "has too few steps";
    return {};
  }
  Value* const same = column[0];
  if (std::all_of(column.begin(), column.end(), [&](Value* value) { return !value || value == same; })) {
    const auto at = std::ranges::find(constants_, same) - constants_.begin();
    if (at == std::ssize(constants_)) constants_.push_back(same);
    return Operand{Kind::constant, static_cast<std::size_t>(at)};
  }
  if (const std::optional<Operand> known = find(column)) return known;
  if (const std::optional<Operand> sequence = add_sequence(column)) return sequence;
  if (const std::optional<Operand> line = read_line(column)) return line;
  return add_state(column);
}

std::optional<UnrolledLoop::Operand> UnrolledLoop::add_sequence(const Column& column) {
  const std::optional<RowOf> second = row_of(*column[1]);
  const std::optional<RowOf> begin = second ? row_of(*column[0], second->source) : std::nullopt;
  if (!begin || begin->axis != second->axis || (!sequences_.empty() && begin->at != first_)) return {};
  for (std::size_t t = 1; t < column.size() && column[t]; ++t) {
    const std::optional<RowOf> row = row_of(*column[t], second->source);
    if (!row || row->axis != second->axis || row->at != begin->at + static_cast<std::int64_t>(t)) return {};
  }
  first_ = begin->at;
  const auto known = std::ranges::find(sequences_, second->source, &Sequence::all);
  const auto at = static_cast<std::size_t>(known - sequences_.begin());
  if (known == sequences_.end()) sequences_.push_back({second->source, second->axis});
  return Operand{Kind::sequence, at};
}

/// A line that every step has, the first one too.
std::optional<UnrolledLoop::Operand> UnrolledLoop::read_line(const Column& column) {
  Line line;
  std::vector<std::size_t> operands;
  for (const Value* value : column) {
    if (!value) continue;
    const Node* node = value->producer();
    const passes::Line now = node ? line_of(*node, opset_) : passes::Line();
    if (now.op.empty() || now.op.starts_with("Reduce") || (!line.op.empty() && now.op != line.op)) {
      why_ = "'" + value->name() + "' is computed in another way than in the other steps";
      return {};
    }
    line.op = now.op;
    operands = now.operands;
  }
  if (lines_.size() == kMostLinesOfAStep) {
    why_ = "a step has too many operations";
    return {};
  }
  const std::size_t at = lines_.size();
  line.column = column;
  lines_.push_back(line);
  std::vector<Operand> from;
  for (const std::size_t operand : operands) {
    Column inputs;
    for (const Value* value : column) inputs.push_back(value ? value->producer()->input(operand) : nullptr);
    const std::optional<Operand> read = read_column(inputs);
    if (!read) return {};
    from.push_back(*read);
  }
  lines_[at].from = std::move(from);
  order_.push_back(at);
  return Operand{Kind::line, at};
}

std::optional<UnrolledLoop::Operand> UnrolledLoop::add_state(const Column& column) {
  if (known(column) < 3 || states_.size() == kMostStates) return {};
  states_.push_back({column, 0});
  open_.push_back(states_.size() - 1);
  return Operand{Kind::state, states_.size() - 1};
}

/// Results that nothing reads are none of the columns' that are read backwards; those of the last step may be read
/// behind the loop.
void UnrolledLoop::complete() {
  for (std::size_t t = 1; t < lines_.front().column.size(); ++t) {
    for (State& state : states_)
      if (!state.before[t]) state.before[t] = lines_[state.next].column[t - 1];
    for (const std::size_t line : order_)
      if (!lines_[line].column[t]) lines_[line].column[t] = made_in(lines_[line], t);
  }
}

/// The result of the line in this step, by its operands; null where nothing computes it.
Value* UnrolledLoop::made_in(const Line& line, std::size_t step) const {
  Value* beside = nullptr;  // an operand, to look among its readers
  for (const Operand& from : line.from) {
    if (from.kind == Kind::sequence || (beside && from.kind == Kind::constant)) continue;
    beside = from.kind == Kind::constant ? constants_[from.index]
             : from.kind == Kind::state  ? states_[from.index].before[step]
                                         : lines_[from.index].column[step];
    if (!beside) return nullptr;
  }
  if (!beside) return nullptr;
  for (const Use& use : beside->uses()) {
    const passes::Line now = &use.node->graph() == &beside->graph() ? line_of(*use.node, opset_) : passes::Line();
    if (now.op != line.op || now.operands.size() != line.from.size()) continue;
    bool same = true;
    for (std::size_t i = 0; same && i < line.from.size(); ++i)
      same = is_value_of(*use.node->input(now.operands[i]), line.from[i], step);
    if (same) return use.node->output();
  }
  return nullptr;
}

bool UnrolledLoop::is_value_of(Value& value, const Operand& operand, std::size_t step) const {
  if (operand.kind == Kind::constant) return constants_[operand.index] == &value;
  if (operand.kind == Kind::state) return states_[operand.index].before[step] == &value;
  if (operand.kind == Kind::line) return lines_[operand.index].column[step] == &value;
  const std::optional<RowOf> row = row_of(value, sequences_[operand.index].all);
  return row && row->axis == sequences_[operand.index].axis && row->at == first_ + static_cast<std::int64_t>(step);
}

Verdict UnrolledLoop::is_apart(const Column& results, const std::unordered_set<const Node*>& stack) const {
  std::unordered_set<const Node*> inside = stack;
  std::unordered_set<const Value*> handed_on, stacked(results.begin(), results.end());
  for (const Line& line : lines_)
    for (const Value* value : line.column)
      if (value) inside.insert(value->producer());
  for (const State& state : states_) handed_on.insert(last(state));
  for (const Line& line : lines_)
    for (const Value* value : line.column) {
      if (!value || handed_on.contains(value)) continue;
      const bool apart = !value->is_graph_output() && std::ranges::all_of(value->uses(), [&](const Use& use) {
        return inside.contains(use.node) && (!stack.contains(use.node) || stacked.contains(value));
      });
      if (!apart) return no("is read outside of its step", value->name());
    }
  return yes();
}

}  // namespace modelflow::passes
