// Constants as numbers, settings that are attributes or inputs by opset, nodes by what they do.
#include "passes/graph/facts.h"

#include <algorithm>
#include <array>
#include <set>

#include "modelflow/pass.h"
#include "modelflow/random.h"
#include "passes/graph/extents.h"
#include "passes/graph/folded.h"

namespace modelflow::passes {

std::optional<Ints> const_ints(const Value* value) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  if (!tensor) return std::nullopt;
  switch (tensor->dtype()) {
    case DType::i64:
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return tensor->to_ints();
    default:
      return std::nullopt;
  }
}

std::optional<double> const_number(const Value* value) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  if (!tensor || tensor->elements() == 0) return std::nullopt;
  const bool integer = tensor->dtype() == DType::i64 || tensor->dtype() == DType::i32;
  if (!is_float(tensor->dtype()) && !integer) return std::nullopt;
  // Reading a large weight to learn that it is no single number would cost a pass over the model.
  if (tensor->elements() > 1 << 20) return std::nullopt;
  const std::vector<double> values = tensor->to_doubles();
  const bool same = std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
  return same ? std::optional(values.front()) : std::nullopt;
}

std::optional<double> number_beside(const Value* value, std::size_t rank) {
  const Tensor* tensor = value ? value->constant() : nullptr;
  return tensor && tensor->elements() == 1 && tensor->rank() <= rank ? const_number(value) : std::nullopt;
}

namespace {

/// What only moves or repeats elements of its first input.
bool is_moving(const Node& node) {
  static constexpr std::array kMoving = {"Expand", "Tile",     "Slice",     "Reshape", "Squeeze",
                                         "Gather", "Identity", "Unsqueeze", "Cast",    "Transpose"};
  return std::ranges::any_of(kMoving, [&](const char* op) { return node.is(op); });
}

std::optional<double> number_of_shape(const Node& constant_of_shape) {
  const Tensor* filler = constant_of_shape.attrs.tensor("value");
  if (!filler) return 0;
  return filler->elements() == 1 ? std::optional(filler->to_doubles().front()) : std::nullopt;
}

constexpr int kMostSteps = 16;

/// `seen`: what is looked at already, and is filled or has ended the search.
bool is_filled(const Value& value, double number, int steps, std::set<const Value*>& seen) {
  if (!seen.insert(&value).second) return true;
  if (const Tensor* constant = value.constant()) return constant->elements() == 0 || const_number(&value) == number;
  const Node* node = value.producer();
  if (!node || steps == 0) return false;
  if (node->is("ConstantOfShape")) return number_of_shape(*node) == number;
  const auto filled = [&](const Value* input) { return input && is_filled(*input, number, steps - 1, seen); };
  if (node->is("Concat")) return std::ranges::all_of(node->inputs(), filled);
  if (node->is("Cast") && number != 0 && number != 1) return false;  // another number in another type
  return is_moving(*node) && filled(node->input(0));
}

bool is_filled(const Value& value, double number) {
  std::set<const Value*> seen;
  return is_filled(value, number, kMostSteps, seen);
}

}  // namespace

bool is_zero(const Value& value) { return is_filled(value, 0); }

std::optional<double> fill_of(const Value& value) {
  std::optional<double> number;
  const Value* source = &value;
  for (int i = 0; i < kMostSteps && source && !number; ++i) {
    const Node* node = source->producer();
    if (source->constant()) {
      number = const_number(source);
    } else if (node && node->is("ConstantOfShape")) {
      number = number_of_shape(*node);
    }
    source = node && (node->is("Concat") || is_moving(*node)) ? node->input(0) : nullptr;
  }
  return number && is_filled(value, *number) ? number : std::nullopt;
}

std::optional<float> scaled(const Node& node, Value*& value) {
  if (!node.is("Mul") && !node.is("Div")) return {};
  for (const std::size_t i : {1, 0}) {
    const std::optional<double> number = const_number(node.input(i));
    if (!number || (node.is("Div") && (i == 0 || *number == 0))) continue;
    const Tensor& constant = *node.input(i)->constant();
    Value* x = node.input(1 - i);
    if (constant.elements() != 1 || !x->shape().has_rank() || constant.rank() > x->shape().rank()) return {};
    const std::optional<float> factor = folded_scale(1, node.is("Mul") ? *number : 1 / *number);
    if (factor) value = x;
    return factor;
  }
  return {};
}

std::optional<Ints> setting(const Node& node, std::string_view name, std::size_t index, Ints otherwise) {
  if (node.attrs.has(name)) return node.attrs.ints(name);
  if (!node.input(index)) return otherwise;
  return const_ints(node.input(index));
}

std::optional<Ints> positive(Ints axes, std::int64_t rank) {
  for (std::int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
  }
  return axes;
}

Ints each_once(Ints axes) {
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

std::optional<Ints> unit_axes(const Node& view) {
  const std::optional<std::size_t> rank = rank_of(view.is("Squeeze") ? view.input(0) : view.output());
  const std::optional<Ints> axes = setting(view, "axes", 1);
  return rank && axes ? positive(*axes, static_cast<std::int64_t>(*rank)) : std::nullopt;
}

std::vector<Node*> nodes_of(const Graph& graph, std::initializer_list<std::string_view> ops) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (std::ranges::any_of(ops, [&](std::string_view op) { return node->is(op); })) nodes.push_back(node.get());
  return nodes;
}

std::vector<Node*> nodes_of(const Graph& graph, Family family, Form form) {
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes())
    if (computes(*node, family, form)) nodes.push_back(node.get());
  return nodes;
}

bool all_are(const Ints& values, std::int64_t wanted, std::size_t first) {
  for (std::size_t i = first; i < values.size(); ++i)
    if (values[i] != wanted) return false;
  return true;
}

std::optional<Ints> reshape_target(const std::vector<Dim>& from, const std::vector<Dim>& to) {
  Ints target;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool copied = i < from.size() && from[i] == to[i];
    target.push_back(to[i].known() ? to[i].value() : copied ? 0 : -1);
    if (to[i].number() == 0) return std::nullopt;
  }
  return std::ranges::count(target, -1) <= 1 ? std::optional(target) : std::nullopt;
}

bool refuses_empty(const Ints& target) {
  return std::ranges::count(target, -1) > 0 && std::ranges::count(target, 0) > 0;
}

bool explicit_pads(const Node& node) {
  const std::string how = node.attrs.text("auto_pad", "NOTSET");
  return how == "NOTSET" || how == "VALID" || how.empty();
}

bool fixed_windows(const Node& node) {
  if (!node.is("ConvTranspose") || (node.input(2) && !node.input(2)->constant())) return false;
  const Tensor* w = node.input(1) ? node.input(1)->constant() : nullptr;
  return w && w->rank() >= 3 && node.attrs.integer("group", 1) == 1 && all_are(node.attrs.ints("dilations"), 1) &&
         !node.attrs.has("output_shape") && explicit_pads(node);
}

bool windows_apart(const Node& node) {
  if (!fixed_windows(node)) return false;
  const Dims& w = node.input(1)->constant()->dims();
  return node.attrs.ints("strides") == Ints(w.begin() + 2, w.end()) && all_are(node.attrs.ints("pads"), 0) &&
         all_are(node.attrs.ints("output_padding"), 0);
}

std::int64_t block_size(const Node& node) {
  constexpr std::int64_t kLargest = 1024;
  const std::int64_t size = node.attrs.integer("blocksize");
  return size >= 1 && size <= kLargest ? size : 0;
}

const Node* made_by(const Value* value, std::string_view op) {
  const Node* node = value ? value->producer() : nullptr;
  return node && node->is(op) ? node : nullptr;
}

bool is_view(const Node& node) {
  for (const char* op : {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"})
    if (node.is(op)) return true;
  return false;
}

bool deterministic(const Node& node) { return node.domain().empty() && node.subgraphs().empty() && !draws(node); }

bool same_type(const Value& a, const Value& b) {
  return a.type.is_tensor() && b.type.is_tensor() && a.dtype() != DType::undefined && a.dtype() == b.dtype() &&
         a.shape() == b.shape();
}

bool leading_alike(const Shape& before, const Shape& after, std::size_t count) {
  std::size_t open = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (before[i] == after[i]) continue;
    if (after[i].number()) return false;
    ++open;
  }
  return open <= 1;
}

bool feeds_product(const Value& value) {
  const Node* reader = only_reader(value);
  if (reader && (reader->is("Mul") || reader->is("Div")) && reader->output() &&
      (const_number(reader->input(0)) || const_number(reader->input(1))))
    reader = only_reader(*reader->output());
  return reader && reader->is("MatMul");
}

std::optional<std::size_t> rank_of(const Value* value) {
  if (!value) return std::nullopt;
  if (value->constant()) return value->constant()->rank();
  if (!value->type.is_tensor() || !value->shape().has_rank()) return std::nullopt;
  return value->shape().rank();
}

Tensor stacked(const std::vector<const Tensor*>& parts) {
  Dims dims = parts.at(0)->dims();
  dims.at(0) = 0;
  for (const Tensor* part : parts) dims[0] += part->dims()[0];
  return Tensor::make(parts[0]->dtype(), dims, [&](std::byte* to) {
    for (const Tensor* part : parts) to = std::copy_n(part->data(), part->bytes(), to);
  });
}

Tensor tensor_of(const Ints& values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace modelflow::passes
