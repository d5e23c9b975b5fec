// What an input is used for (its role), read off the nodes behind it: ids, a mask, a length.
#include "src/verify/role.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

#include "src/graph/constant_of.h"
#include "src/verify/element.h"

namespace modelflow {
namespace {

constexpr int kDeepest = 12;      // nodes between an input and what tells its role
constexpr double kLow = -1000.0;  // a constant below this hides scores

bool is_any_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return node.is(op); });
}

bool only_moves(const Node& node) {
  return is_any_of(node, {"Cast", "CastLike", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Flatten", "Expand",
                          "Slice", "Transpose", "Tile"});
}

/// What is added to ids at most: where the rows of each column begin in a table of all columns. Nothing where it is not
/// known.
std::optional<std::int64_t> shift_of_ids(const Use& use) {
  const Value* added = use.node->is("Add") ? use.node->input(1 - use.index) : nullptr;
  const Tensor* shift = added ? constant_of(*added) : nullptr;
  if (!shift || is_float(shift->dtype()) || shift->elements() == 0) return {};
  return static_cast<std::int64_t>(std::clamp(std::ranges::max(shift->to_doubles()), -0x1p62, 0x1p62));
}

/// The smallest table that this value, or a part of it, indexes (an embedding's vocabulary, the nodes of a graph).
std::int64_t index_limit(const Value& value, int depth = 0) {
  std::int64_t limit = INT64_MAX;
  for (const Use& use : value.uses()) {
    const Node& node = *use.node;
    const bool indexes = is_any_of(node, {"Gather", "GatherElements", "ScatterElements"}) && use.index == 1;
    if (indexes && node.input(0)->shape().has_rank()) {
      const Shape& table = node.input(0)->shape();
      const std::int64_t axis = node.attrs.integer("axis", 0);
      const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(table.rank()) : axis);
      if (at < table.rank() && table[at].known()) limit = std::min(limit, table[at].value());
    } else if (depth < 6 && use.index == 0 && (only_moves(node) || is_any_of(node, {"Gather", "Split"}))) {
      for (const Value* output : node.outputs())
        if (output) limit = std::min(limit, index_limit(*output, depth + 1));
    } else if (const std::optional<std::int64_t> shift = depth < 6 ? shift_of_ids(use) : std::nullopt) {
      const std::int64_t rows = node.output() ? index_limit(*node.output(), depth + 1) : INT64_MAX;
      if (rows != INT64_MAX)
        limit = std::min(limit, std::max<std::int64_t>(rows - std::max<std::int64_t>(*shift, 0), 1));
    }
  }
  return limit;
}

bool is_low(const Value* value) {
  const Tensor* constant = value ? constant_of(*value) : nullptr;
  if (!constant || !is_float(constant->dtype()) || constant->elements() == 0 || constant->elements() > 64) return false;
  return constant->to_doubles().front() <= kLow;
}

using Test = std::function<bool(const Use&)>;

/// Whether the value comes to such an end, by way of so many nodes at most that it goes on through.
bool comes_to(const Value& value, const Test& is_end, const Test& goes_on, int most = 4) {
  return std::ranges::any_of(value.uses(), [&](const Use& use) {
    if (is_end(use)) return true;
    return most > 0 && goes_on(use) && use.node->output() && comes_to(*use.node->output(), is_end, goes_on, most - 1);
  });
}

bool is_moved(const Use& use) { return only_moves(*use.node) && use.index == 0; }

bool reaches_softmax(const Value& value) {
  return comes_to(
      value, [](const Use& use) { return use.node->is("Softmax"); },
      [](const Use& use) {
        return only_moves(*use.node) || is_any_of(*use.node, {"Add", "Max", "Where"});
      });
}

/// What happened to a mask on its way.
struct Path {
  bool flipped = false;   ///< 1 became 0
  bool computed = false;  ///< it was multiplied, subtracted from 1 or compared
  bool low = false;       ///< multiplied by a very low number
  int depth = 0;
};

struct Found {
  bool mask = false, bias = false, one_hides = false;
  int left = 200;  // nodes still to look at
};

void follow(const Value& value, Path path, Found& found);

/// True where this use tells what the value is.
bool tells(const Node& node, std::size_t index, const Path& path, Found& found) {
  const auto is_mask = [&](bool one_hides) {
    found.mask = true;
    found.one_hides = one_hides;
    return true;
  };
  if (node.is("Where") && index == 0) {
    if (is_low(node.input(1))) return is_mask(!path.flipped);
    if (is_low(node.input(2))) return is_mask(path.flipped);
    return node.output() && reaches_softmax(*node.output()) && is_mask(path.flipped);
  }
  if (node.is("Attention") && index == 3) {
    found.bias = node.input(3) && is_float(node.input(3)->dtype());
    return is_mask(false);
  }
  if (!node.is("Add") || !node.output() || !reaches_softmax(*node.output())) return false;
  const Value* other = node.input(1 - index);
  if (!other || other->constant()) return false;  // a bias of its own, no scores
  found.bias = !path.computed;
  return is_mask(path.computed && path.low && !path.flipped);
}

void follow(const Value& value, Path path, Found& found) {
  if (++path.depth > kDeepest) return;
  for (const Use& use : value.uses()) {
    if (found.mask || --found.left < 0) return;
    const Node& node = *use.node;
    if (!node.output() || tells(node, use.index, path, found)) continue;
    Path next = path;
    if (node.is("Not") || (node.is("Sub") && use.index == 1)) next.flipped = !path.flipped;
    if (is_any_of(node, {"Sub", "Mul", "Equal", "Greater", "Less"})) next.computed = true;
    if (node.is("Mul") && is_low(node.input(1 - use.index))) next.low = true;
    if (is_moved(use) || is_any_of(node, {"Not", "Sub", "Mul", "And", "Or", "Add"}))
      follow(*node.output(), next, found);
  }
}

/// Whether it is data to a layer, moved or joined with other data.
bool feeds_a_product(const Value& value) {
  return comes_to(
      value,
      [](const Use& use) {
        return is_any_of(*use.node, {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN"});
      },
      [](const Use& use) { return only_moves(*use.node) || use.node->is("Concat"); });
}

/// What an integer must be, because of the operand that it becomes.
struct Operand {
  const char* op;
  std::size_t index;
  Role role;
};
constexpr Operand kOperands[] = {
    {"Tile", 1, Role::count},
    {"Expand", 1, Role::count},
    {"Reshape", 1, Role::count},
    {"TopK", 1, Role::count},
    {"OneHot", 1, Role::count},
    {"ConstantOfShape", 0, Role::count},
    {"ReverseSequence", 1, Role::lengths},
    {"LSTM", 4, Role::lengths},
    {"GRU", 4, Role::lengths},
    {"RNN", 4, Role::lengths},
    {"RoiAlign", 2, Role::segments},
};

/// By way of what only moves it.
std::optional<Role> role_of_operand(const Value& value, int depth = 0) {
  for (const Use& use : value.uses()) {
    for (const Operand& operand : kOperands)
      if (use.node->is(operand.op) && use.index == operand.index) return operand.role;
    const bool goes_on = is_moved(use) || use.node->is("Concat");
    if (depth >= 4 || !goes_on || !use.node->output()) continue;
    if (const std::optional<Role> found = role_of_operand(*use.node->output(), depth + 1)) return found;
  }
  return {};
}

/// 0, 1, 2, ... as Range or as a constant, moved or not.
bool counts_up(const Value* value, int depth = 0) {
  if (!value || depth > 4) return false;
  if (const Tensor* constant = constant_of(*value)) {
    if (constant->dtype() != DType::i64 || constant->elements() < 2) return false;
    const std::vector<double> numbers = constant->to_doubles();
    return std::ranges::adjacent_find(numbers, [](double a, double b) { return b != a + 1; }) == numbers.end();
  }
  const Node* node = value->producer();
  return node && (node->is("Range") || (only_moves(*node) && counts_up(node->input(0), depth + 1)));
}

/// Lengths of rows tell which positions are padding.
bool ends_rows(const Value& value) {
  return comes_to(
      value,
      [](const Use& use) {
        return is_any_of(*use.node, {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) &&
               counts_up(use.node->input(1 - use.index));
      },
      is_moved);
}

/// Of one channel and one axis, in large steps.
bool is_conv_of_samples(const Use& use) {
  const Node& node = *use.node;
  const Value* weights = use.index == 0 && node.is("Conv") ? node.input(1) : nullptr;
  if (!weights || !weights->shape().has_rank() || weights->shape().rank() != 3) return false;
  const std::vector<std::int64_t> strides = node.attrs.ints("strides");
  return weights->shape()[1] == Dim(1) && node.attrs.integer("group", 1) == 1 && !strides.empty() && strides[0] >= 4;
}

Found mask_use(const Value& input) {
  Found found;
  follow(input, {}, found);
  return found;
}

/// `limit`: index_limit of it.
Meaning of_integers(const Value& input, std::int64_t limit) {
  const std::string& name = input.name();
  if (const std::optional<Role> role = role_of_operand(input)) return {.role = *role};
  if (has_word(name, {"token_type", "segment", "type_id"})) return {.role = Role::segments, .limit = limit};
  if (has_word(name, {"position"})) return {.role = Role::positions, .limit = limit};
  if (name == "sr" || has_word(name, {"sample_rate", "sampling_rate"})) return {.role = Role::rate};
  if (has_word(name, {"length", "lens", "_len"})) return {.role = Role::lengths};
  if (bits(input.dtype()) <= 8) return {.role = Role::bytes};
  const bool rows = input.shape().has_rank() && input.shape().rank() > 0;
  if (limit == INT64_MAX && rows && ends_rows(input)) return {.role = Role::lengths};
  return {.role = Role::ids, .limit = limit};
}

}  // namespace

bool looks_like_an_image(const Value& input) {
  if (!input.shape().has_rank() || input.shape().rank() != 4) return false;
  const auto is_channels = [](const Dim& dim) { return !dim.known() || dim.value() == 1 || dim.value() == 3; };
  return is_channels(input.shape()[1]) || is_channels(input.shape()[3]);
}

bool looks_like_sound(const Value& input) {
  return is_float(input.dtype()) && comes_to(input, is_conv_of_samples, is_moved, kDeepest - 1);
}

bool has_word(std::string text, std::initializer_list<std::string_view> words) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');  // tolower costs a call, and a name may be long
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

Meaning meaning_of(const Value& input) {
  const bool floats = holds_fractions(input.dtype()), named = has_word(input.name(), {"mask"});
  const std::int64_t limit = index_limit(input);
  const bool indexes = limit != INT64_MAX;
  const bool data = floats && !named && feeds_a_product(input);
  const Found found = indexes || data ? Found() : mask_use(input);
  if (named || found.mask)
    return {.role = floats && found.bias ? Role::bias : Role::mask, .one_hides = found.mask && found.one_hides};
  if (!floats && input.dtype() != DType::boolean) return of_integers(input, limit);
  const bool small = input.shape().has_rank() && input.shape().rank() < 2;
  if (floats && small && has_word(input.name(), {"temperature", "threshold", "prob", "scale"}))
    return {.role = Role::factor};
  return {.role = floats && looks_like_an_image(input) ? Role::image : Role::plain, .limit = limit};
}

}  // namespace modelflow
