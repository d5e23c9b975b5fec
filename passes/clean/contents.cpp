// Shape arithmetic over symbols, node by node.
#include "passes/clean/contents.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "passes/graph/facts.h"

namespace modelflow::passes {

namespace {

constexpr std::size_t kMost = 64;  ///< elements: a shape has no more

Elements numbers(const Ints& values) {
  Elements elements;
  for (const std::int64_t v : values) elements.push_back({Dim(v), v >= 0});
  return elements;
}

bool integral(DType dtype) { return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::boolean; }

std::optional<Elements> shape_of(const Node& node) {
  const Value* x = node.input(0);
  const std::optional<std::size_t> rank = rank_of(x);
  if (!rank) return std::nullopt;
  Elements dims;
  for (std::size_t i = 0; i < *rank; ++i)
    dims.push_back({x->constant() ? Dim(x->constant()->dims()[i]) : x->shape()[i], true});
  if (node.op() == "Size") {
    Dim product(1);
    for (const Element& dim : dims) product = product * dim.value;
    return Elements{{product, true}};
  }
  const auto size = static_cast<std::int64_t>(*rank);
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  const std::int64_t start = clamp(node.attrs.integer("start")), end = clamp(node.attrs.integer("end", size));
  return start < end ? Elements(dims.begin() + start, dims.begin() + end) : Elements{};
}

Element add(const Element& a, const Element& b) { return {a.value + b.value, a.extent && b.extent}; }
Element subtract(const Element& a, const Element& b) { return {a.value - b.value, false}; }
Element multiply(const Element& a, const Element& b) { return {a.value * b.value, a.extent && b.extent}; }
Element divide(const Element& a, const Element& b) {
  const auto x = a.value.number(), y = b.value.number();
  if (y == 0) return {};
  // INT64_MIN / -1 has no result: it stops the processor.
  if (x && y && *y != -1) return {Dim(*x / *y), *x / *y >= 0};
  return {a.value.divided_by(b.value), a.extent && b.extent};
}
Element equals(const Element& a, const Element& b) {
  if (a.value == b.value) return {Dim(1), true};
  const auto x = a.value.number(), y = b.value.number();
  const bool differ = (x && y) || (a.extent && y && *y < 0) || (b.extent && x && *x < 0);
  return differ ? Element{Dim(0), true} : Element{};
}

// Which of two is larger is known for numbers and equal dims only.
Element extreme(const Element& a, const Element& b, bool larger) {
  if (a.value == b.value) return a;
  const auto x = a.value.number(), y = b.value.number();
  if (!x || !y) return {};
  return (*x > *y) == larger ? a : b;
}
Element largest(const Element& a, const Element& b) { return extreme(a, b, true); }
Element smallest(const Element& a, const Element& b) { return extreme(a, b, false); }

struct Operation {
  std::string_view op;
  Element (*apply)(const Element&, const Element&);
};
constexpr std::array<Operation, 7> operations = {{{"Add", add},
                                                  {"Sub", subtract},
                                                  {"Mul", multiply},
                                                  {"Div", divide},
                                                  {"Equal", equals},
                                                  {"Max", largest},
                                                  {"Min", smallest}}};

/// As an element of this type; nothing where the type does not hold the number, which then becomes another one.
Element held(const Element& element, DType dtype) {
  const auto number = element.value.number();
  if (dtype == DType::boolean) return number && (*number == 0 || *number == 1) ? element : Element{};
  if (dtype == DType::i32 && number && *number != static_cast<std::int32_t>(*number)) return {};
  return element;
}

/// Cast to bool: whether it is 0.
Element flag(const Element& element) {
  const auto number = element.value.number();
  return number ? Element{Dim(*number != 0), true} : Element{};
}

const Element& at(const Elements& elements, std::size_t i) { return elements.size() == 1 ? elements[0] : elements[i]; }

}  // namespace

Contents::Contents(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    const Value* out = node->output();
    if (!node->domain().empty() || !out || !node->input(0)) continue;
    std::optional<Elements> elements = compute(*node);
    if (!elements || elements->size() > kMost) continue;
    const std::optional<std::size_t> rank = rank_of(out);
    if (!rank || *rank > 1 || (*rank == 0 && elements->size() != 1) || !integral(out->dtype())) continue;
    for (Element& element : *elements) element = held(element, out->dtype());
    known_[out] = std::move(*elements);
  }
}

const Elements* Contents::of(const Value* value) {
  if (!value) return nullptr;
  if (const auto found = known_.find(value); found != known_.end()) return &found->second;
  const Tensor* tensor = value->constant();
  if (!tensor || tensor->rank() > 1 || !integral(tensor->dtype())) return nullptr;
  if (tensor->elements() > static_cast<std::int64_t>(kMost)) return nullptr;
  return &(known_[value] = numbers(tensor->to_ints()));
}

std::optional<Elements> Contents::compute(const Node& node) {
  const std::string& op = node.op();
  if (op == "Shape" || op == "Size") return shape_of(node);
  if (op == "Gather" || op == "Slice") return pick(node);
  if (op == "Concat") return joined(node);
  for (const char* same : {"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"}) {
    if (op != same) continue;
    const Elements* x = of(node.input(0));
    if (!x || !integral(node.input(0)->dtype())) return std::nullopt;
    Elements list = *x;
    if (op == "Cast" && node.output()->dtype() == DType::boolean)
      std::transform(list.begin(), list.end(), list.begin(), flag);
    return list;
  }
  if (op == "ReduceProd") {
    const Elements* x = of(node.input(0));
    if (!x || rank_of(node.input(0)) != 1 || node.attrs.integer("noop_with_empty_axes") != 0) return std::nullopt;
    return Elements{std::accumulate(x->begin(), x->end(), Element{Dim(1), true}, multiply)};
  }
  if (op == "ConstantOfShape") {
    const Elements* length = of(node.input(0));
    const auto n = length && length->size() == 1 ? length->front().value.number() : std::nullopt;
    const Tensor* value = node.attrs.tensor("value");
    if (!n || *n < 0 || *n > static_cast<std::int64_t>(kMost)) return std::nullopt;
    if (!value || value->elements() != 1 || !integral(value->dtype())) return std::nullopt;
    return numbers(Ints(static_cast<std::size_t>(*n), value->to_ints().at(0)));
  }
  return arithmetic(node);
}

std::optional<Elements> Contents::pick(const Node& node) {
  const Elements* x = of(node.input(0));
  if (!x || rank_of(node.input(0)) != 1) return std::nullopt;
  const auto size = static_cast<std::int64_t>(x->size());
  Elements picked;
  if (node.op() == "Gather") {
    const std::optional<Ints> indices = const_ints(node.input(1));
    const std::optional<Ints> places = indices ? positive(*indices, size) : std::nullopt;
    if (!places) return std::nullopt;
    for (const std::int64_t i : *places) picked.push_back((*x)[static_cast<std::size_t>(i)]);
    return picked;
  }
  const std::optional<Ints> starts = setting(node, "starts", 1), ends = setting(node, "ends", 2);
  const std::optional<Ints> steps = setting(node, "steps", 4, {1});
  if (!starts || !ends || !steps || starts->size() != 1 || ends->size() != 1 || steps->size() != 1) return std::nullopt;
  if ((*steps)[0] < 1) return std::nullopt;
  const auto clamp = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
  const std::int64_t end = clamp((*ends)[0]), step = std::min((*steps)[0], size + 1);  // a longer one takes no more
  for (std::int64_t i = clamp((*starts)[0]); i < end; i += step) picked.push_back((*x)[static_cast<std::size_t>(i)]);
  return picked;
}

std::optional<Elements> Contents::joined(const Node& node) {
  Elements all;
  for (const Value* input : node.inputs()) {
    const std::optional<std::size_t> rank = rank_of(input);
    if (rank != 1) return std::nullopt;
    if (const Elements* part = of(input)) {
      all.insert(all.end(), part->begin(), part->end());
      continue;
    }
    // Unknown numbers, but as many as the tensor is long.
    const auto length =
        input->type.is_tensor() && input->shape().has_rank() ? input->shape()[0].number() : std::nullopt;
    if (!length || *length < 0 || *length > static_cast<std::int64_t>(kMost)) return std::nullopt;
    all.resize(all.size() + static_cast<std::size_t>(*length));
  }
  return all;
}

std::optional<Elements> Contents::arithmetic(const Node& node) {
  const auto broadcast = [](std::initializer_list<const Elements*> inputs) -> std::optional<std::size_t> {
    std::size_t size = 1;
    for (const Elements* x : inputs) {
      if (!x) return std::nullopt;
      if (x->size() == 1) continue;
      if (size != 1 && x->size() != size) return std::nullopt;
      size = x->size();
    }
    return size;
  };
  const Elements *a = of(node.input(0)), *b = of(node.input(1));
  Elements result;
  if (node.op() == "Where") {
    const Elements* c = of(node.input(2));
    const std::optional<std::size_t> size = broadcast({a, b, c});
    if (!size) return std::nullopt;
    for (std::size_t i = 0; i < *size; ++i) {
      const std::optional<std::int64_t> condition = at(*a, i).value.number();
      result.push_back(!condition ? Element{} : *condition ? at(*b, i) : at(*c, i));
    }
    return result;
  }
  for (const Operation& operation : operations) {
    if (node.op() != operation.op || node.inputs().size() != 2) continue;
    const std::optional<std::size_t> size = broadcast({a, b});
    if (!size) return std::nullopt;
    for (std::size_t i = 0; i < *size; ++i) result.push_back(operation.apply(at(*a, i), at(*b, i)));
    return result;
  }
  return std::nullopt;
}

}  // namespace modelflow::passes
