// Random single ops: elementwise, moving, reducing, cutting and joining, each in spellings that exporters write.
#include "tests/fuzz/glue.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/fuzz/elements.h"

namespace modelflow::fuzz {
namespace {

using Int = std::int64_t;

/// What an op is added with.
struct Site {
  Model& model;
  Value& value;
  const std::vector<Value*>& pool;
  Dice& dice;

  Graph& graph() const { return model.graph(); }
  DType dtype() const { return value.dtype(); }
  const Shape& shape() const { return value.shape(); }
  Int rank() const { return shape().has_rank() ? static_cast<Int>(shape().rank()) : -1; }
  bool floating() const { return dtype() == DType::f32 || dtype() == DType::f64 || dtype() == DType::f16; }
  Int axis() const { return dice.between(dice.chance(0.4) ? -rank() : 0, rank() - 1); }
  Value* op(std::string_view name, std::vector<Value*> inputs, Attrs attrs = {}, std::size_t outputs = 1) const {
    return graph().add(name, std::move(inputs), {.outputs = outputs, .attrs = std::move(attrs)}).output();
  }
  Value* ints(const Ints& values) const {
    return &graph().add_constant(Tensor::of<Int>({static_cast<Int>(values.size())}, std::span<const Int>(values)));
  }
  Value* floats(const Dims& dims, double low = -2, double high = 2) const {
    return &graph().add_constant(random_floats(dtype(), dims, low, high, dice));
  }
  /// An op whose axes became an input with opset `since`.
  Value* with_axes(std::string_view name, const Ints& axes, Int since, Attrs attrs = {}) const {
    if (model.opset() >= since) return op(name, {&value, ints(axes)}, std::move(attrs));
    attrs.set("axes", axes);
    return op(name, {&value}, std::move(attrs));
  }
};

Value* unary(const Site& s) {
  if (!s.floating()) return s.dtype() == DType::boolean ? s.op("Not", {&s.value}) : s.op("Identity", {&s.value});
  switch (s.dice.below(12)) {
    case 0:
      return s.op("LeakyRelu", {&s.value}, {{"alpha", s.dice.any({0.1F, 0.01F, -0.5F, 1.5F})}});
    case 1:
      return s.op("HardSigmoid", {&s.value}, {{"alpha", s.dice.any({1 / 6.0F, 0.2F})}, {"beta", 0.5F}});
    case 2:
      return s.op("Mul", {&s.value, s.op("Sigmoid", {&s.value})});
    case 3: {
      Value* low = s.dice.chance(0.7) ? s.floats({}, -3, 0) : nullptr;
      Value* high = s.dice.chance(0.7) ? s.floats({}, 0, 6) : nullptr;
      return s.model.opset() >= 11 ? s.op("Clip", {&s.value, low, high}) : s.op("Clip", {&s.value}, {{"min", -1.0F}});
    }
    case 4:
      return s.op("Sqrt", {s.op("Abs", {&s.value})});
    default:
      return s.op(s.dice.any<const char*>({"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "Identity", "Softplus",
                                           "Elu", "Exp", "Floor", "Softsign"}),
                  {&s.value});
  }
}

Dims broadcast_dims(const Site& s) {
  Dims dims;
  for (const Dim& dim : s.shape().dims()) dims.push_back(dim.known() && s.dice.chance(0.5) ? dim.value() : 1);
  const auto drop = s.dice.below(dims.size() + 1);
  dims.erase(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(drop));
  if (s.dice.chance(0.1)) dims.insert(dims.begin(), 1);
  return dims;
}

Value* with_constant(const Site& s) {
  if (!s.floating() || s.rank() < 0) return nullptr;
  Value* constant = s.floats(broadcast_dims(s), 0.25, 2);
  const char* name = s.dice.any<const char*>({"Add", "Sub", "Mul", "Div", "Max", "Min", "Mul", "Add"});
  return s.dice.chance(0.5) ? s.op(name, {&s.value, constant}) : s.op(name, {constant, &s.value});
}

/// Another value that certainly broadcasts with this one: equal dims, ones, or fewer of them.
Value* partner(const Site& s) {
  std::vector<Value*> fitting;
  for (Value* other : s.pool) {
    if (other->dtype() != s.dtype() || !other->shape().has_rank() || !s.shape().has_rank()) continue;
    bool fits = true;
    const std::size_t a = s.shape().rank(), b = other->shape().rank();
    for (std::size_t i = 1; i <= std::min(a, b); ++i) {
      const Dim &x = s.shape()[a - i], &y = other->shape()[b - i];
      const bool unlike = !x.known() && !y.known() && s.dice.chance(0.3);  // two symbols that may be equal, or 1
      fits = fits && (x == y || x == Dim(1) || y == Dim(1) || unlike);
    }
    if (fits) fitting.push_back(other);
  }
  return fitting.empty() ? nullptr : s.dice.pick(fitting);
}

Value* binary(const Site& s) {
  Value* other = partner(s);
  if (!other || s.dtype() == DType::boolean || !(s.floating() || s.dtype() == DType::i64 || s.dtype() == DType::i32))
    return nullptr;
  if (s.dice.chance(0.15)) {
    Value* condition = s.op(s.dice.any<const char*>({"Greater", "Less"}), {&s.value, other});
    return s.op("Where", {condition, s.dice.chance(0.5) ? other : &s.value, s.dice.chance(0.5) ? other : &s.value});
  }
  const char* name = s.dice.any<const char*>({"Add", "Sub", "Mul", "Add", "Mul"});
  return s.dice.chance(0.5) ? s.op(name, {&s.value, other}) : s.op(name, {other, &s.value});
}

Value* transpose(const Site& s) {
  if (s.rank() < 1) return nullptr;
  Ints perm(static_cast<std::size_t>(s.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  if (s.dice.chance(0.5)) {
    std::swap(perm[s.dice.below(perm.size())], perm[s.dice.below(perm.size())]);
  } else {
    s.dice.shuffle(perm);
  }
  return s.dice.chance(0.1) ? s.op("Transpose", {&s.value}) : s.op("Transpose", {&s.value}, {{"perm", perm}});
}

Value* reshape(const Site& s) {
  if (s.rank() < 1) return s.rank() == 0 ? s.op("Reshape", {&s.value, s.ints({-1})}) : nullptr;
  Ints target;
  bool open = false;
  std::size_t i = 0;
  const auto rank = static_cast<std::size_t>(s.rank());
  for (; i < rank; ++i) {
    const Dim& dim = s.shape()[i];
    if (!dim.known()) {
      if (target.size() == i)
        target.push_back(0);
      else if (!open)
        target.push_back(-1), open = true;
      else
        return nullptr;
    } else if (dim.value() > 1 && dim.value() % 2 == 0 && s.dice.chance(0.4)) {
      target.push_back(2), target.push_back(dim.value() / 2);
    } else if (s.dice.chance(0.3) && !target.empty() && target.back() > 0) {
      target.back() *= dim.value();
    } else if (dim.value() != 1 || s.dice.chance(0.5)) {
      target.push_back(dim.value());
    }
  }
  if (!open && !target.empty() && s.dice.chance(0.4)) {
    Int& chosen = target[s.dice.below(target.size())];
    if (chosen > 0) chosen = -1;
  }
  if (s.dice.chance(0.15) && !open) target = {-1};
  return s.op("Reshape", {&s.value, s.ints(target)});
}

Value* rank_change(const Site& s) {
  if (s.rank() < 0 || s.rank() > 4) return nullptr;
  for (Int i = 0; i < s.rank(); ++i)
    if (s.shape()[static_cast<std::size_t>(i)] == Dim(1) && s.dice.chance(0.5))
      return s.with_axes("Squeeze", {s.dice.chance(0.5) ? i : i - s.rank()}, 13);
  if (s.rank() > 0 && s.dice.chance(0.2)) return s.op("Flatten", {&s.value}, {{"axis", s.dice.between(0, s.rank())}});
  return s.with_axes("Unsqueeze", {s.dice.between(0, s.rank())}, 13);
}

Value* slice(const Site& s) {
  if (s.rank() < 1) return nullptr;
  const Int axis = s.axis();
  const Int start = s.dice.any<Int>({0, 1, -2, -3, 0}), step = s.dice.any<Int>({1, 1, 1, 2, -1});
  Int end = s.dice.any<Int>({INT64_MAX, -1, 2, 4, 100});
  if (step < 0)
    return s.model.opset() < 10
               ? nullptr
               : s.op("Slice", {&s.value, s.ints({-1}), s.ints({INT64_MIN}), s.ints({axis}), s.ints({step})});
  if (s.model.opset() < 10)
    return s.op("Slice", {&s.value},
                {{"starts", Ints{start}}, {"ends", Ints{end}}, {"axes", Ints{axis < 0 ? axis + s.rank() : axis}}});
  if (step == 1 && s.dice.chance(0.5)) return s.op("Slice", {&s.value, s.ints({start}), s.ints({end}), s.ints({axis})});
  return s.op("Slice", {&s.value, s.ints({start}), s.ints({end}), s.ints({axis}), s.ints({step})});
}

Value* join(const Site& s) {
  if (s.rank() < 1) return nullptr;
  std::vector<Value*> parts = {&s.value};
  for (Value* other : s.pool)
    if (parts.size() < 3 && other->dtype() == s.dtype() && other->shape() == s.shape() && s.dice.chance(0.5))
      parts.push_back(other);
  if (parts.size() == 1 || s.dice.chance(0.2)) parts.push_back(&s.value);
  return s.op("Concat", parts, {{"axis", s.axis()}});
}

Value* split(const Site& s) {
  if (s.rank() < 1) return nullptr;
  const Int axis = s.axis();
  const Dim& dim = s.shape()[static_cast<std::size_t>(axis < 0 ? axis + s.rank() : axis)];
  if (!dim.known() || dim.value() < 2) return nullptr;
  const Int first = s.dice.between(1, dim.value() - 1);
  Node& node =
      s.model.opset() >= 13
          ? s.graph().add("Split", {&s.value, s.ints({first, dim.value() - first})},
                          {.outputs = 2, .attrs = {{"axis", axis}}})
          : s.graph().add("Split", {&s.value},
                          {.outputs = 2, .attrs = {{"axis", axis}, {"split", Ints{first, dim.value() - first}}}});
  return node.output(s.dice.below(2));
}

Value* gather(const Site& s) {
  if (s.rank() < 1) return nullptr;
  const Tensor index = s.dice.chance(0.5) ? Tensor::scalar<Int>(s.dice.any<Int>({0, 0, -1}))
                                          : Tensor::of<Int>({2}, {0, s.dice.any<Int>({0, -1})});
  return s.op("Gather", {&s.value, &s.graph().add_constant(index)}, {{"axis", s.axis()}});
}

Value* reduce(const Site& s) {
  if (s.rank() < 1 || !s.floating()) return nullptr;
  Ints axes = {s.axis()};
  if (s.rank() > 2 && s.dice.chance(0.4)) {
    const Int other = s.axis();
    if ((other + s.rank()) % s.rank() != (axes[0] + s.rank()) % s.rank()) axes.push_back(other);
  }
  const bool sum = s.dice.chance(0.3);
  const char* name =
      sum ? "ReduceSum" : s.dice.any<const char*>({"ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"});
  Attrs attrs;
  if (s.dice.chance(0.7)) attrs.set("keepdims", s.dice.chance(0.5) ? 1 : 0);
  return s.with_axes(name, axes, sum ? 13 : 18, attrs);
}

Value* softmax(const Site& s) {
  if (s.rank() < 1 || !s.floating()) return nullptr;
  return s.op(s.dice.any<const char*>({"Softmax", "Softmax", "LogSoftmax"}), {&s.value}, {{"axis", s.axis()}});
}

Value* product(const Site& s) {
  if (s.rank() < 2 || s.dtype() != DType::f32 || !s.shape().back().known() || s.shape().back().value() > 64)
    return nullptr;
  const Int columns = s.dice.any<Int>({1, 3, 4, 8, 16, 17});
  Value* made = s.op("MatMul", {&s.value, s.floats({s.shape().back().value(), columns}, -1, 1)});
  return s.dice.chance(0.5) ? s.op("Add", {made, s.floats({columns}, -1, 1)}) : made;
}

Value* convolution(const Site& s) {
  if (s.rank() != 4 || s.dtype() != DType::f32 || !s.shape()[1].known() || s.shape()[1].value() > 32) return nullptr;
  const Int channels = s.shape()[1].value(), kernel = s.dice.any<Int>({1, 3}), out = s.dice.any<Int>({1, 4, 8, 16});
  const bool depthwise = s.dice.chance(0.3);
  Attrs attrs{{"pads", Ints(4, kernel / 2)}};
  if (depthwise) attrs.set("group", channels);
  if (s.dice.chance(0.3)) attrs.set("strides", Ints{2, 2});
  const Int made = depthwise ? channels : out;
  std::vector<Value*> inputs = {&s.value, s.floats({made, depthwise ? 1 : channels, kernel, kernel}, -1, 1)};
  if (s.dice.chance(0.5)) inputs.push_back(s.floats({made}, -1, 1));
  return s.op("Conv", inputs, attrs);
}

Value* pool(const Site& s) {
  if (s.rank() != 4 || s.dtype() != DType::f32) return nullptr;
  if (s.dice.chance(0.3)) return s.op(s.dice.any<const char*>({"GlobalAveragePool", "GlobalMaxPool"}), {&s.value});
  return s.op(s.dice.any<const char*>({"MaxPool", "AveragePool"}), {&s.value},
              {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{s.dice.between(1, 2), 2}}, {"pads", Ints{1, 1, 1, 1}}});
}

Value* cast(const Site& s) {
  const auto to = [&](Value* value, DType dtype) { return s.op("Cast", {value}, {{"to", static_cast<Int>(dtype)}}); };
  if (!s.floating()) return to(&s.value, DType::f32);
  switch (s.dice.below(4)) {
    case 0:
      return to(to(&s.value, DType::f16), s.dtype());
    case 1:
      return to(to(&s.value, DType::f64), s.dtype());
    case 2:
      return to(&s.value, s.dtype());
    default:
      return to(s.op("Greater", {&s.value, s.floats({})}), s.dtype());
  }
}

/// Shape arithmetic as exporters write it: the extents of a value go into a Reshape of the same value.
Value* by_shape(const Site& s) {
  if (s.rank() < 2) return nullptr;
  Value* shape = s.op("Shape", {&s.value});
  Value* first = s.op("Gather", {shape, &s.graph().add_constant(Tensor::scalar<Int>(0))}, {{"axis", Int{0}}});
  Site at{s.model, *first, s.pool, s.dice};
  Value* joined = s.op("Concat", {at.with_axes("Unsqueeze", {0}, 13), s.ints({-1})}, {{"axis", Int{0}}});
  return s.op("Reshape", {&s.value, joined});
}

Value* pad(const Site& s) {
  if (s.rank() < 1 || s.model.opset() < 11 || !s.floating()) return nullptr;
  Ints pads(static_cast<std::size_t>(2 * s.rank()), 0);
  pads[s.dice.below(pads.size())] = s.dice.any<Int>({1, 1, 2});
  const char* mode = s.dice.any<const char*>({"constant", "constant", "edge"});
  return s.op("Pad", {&s.value, s.ints(pads)}, {{"mode", std::string(mode)}});
}

Value* expand(const Site& s) {
  if (s.rank() < 1) return nullptr;
  Ints target(static_cast<std::size_t>(s.rank()), 1);
  for (std::size_t i = 0; i < target.size(); ++i)
    if (s.shape()[i] == Dim(1)) target[i] = s.dice.between(1, 3);
  if (s.dice.chance(0.3)) target.insert(target.begin(), 2);
  if (s.dice.chance(0.3)) {
    Ints repeats(static_cast<std::size_t>(s.rank()), 1);
    repeats[s.dice.below(repeats.size())] = 2;
    return s.op("Tile", {&s.value, s.ints(repeats)});
  }
  return s.op("Expand", {&s.value, s.ints(target)});
}

}  // namespace

Tensor random_floats(DType dtype, const Dims& dims, double low, double high, Dice& dice) {
  std::vector<double> values(static_cast<std::size_t>(element_count(dims)));
  for (double& value : values) value = dice.chance(0.1) ? dice.any({0.0, 1.0, -1.0, 0.5}) : dice.uniform(low, high);
  return tensor_of(dtype, dims, values);
}

Value* add_glue(Model& model, Value& value, const std::vector<Value*>& pool_of, Dice& dice) {
  using Maker = Value* (*)(const Site&);
  static const std::vector<Maker> makers = {
      unary,     unary,       unary,       with_constant, with_constant, with_constant, binary, binary, transpose,
      transpose, reshape,     rank_change, slice,         join,          split,         gather, reduce, softmax,
      product,   convolution, pool,        cast,          by_shape,      pad,           expand};
  const Site site{model, value, pool_of, dice};
  return dice.pick(makers)(site);
}

}  // namespace modelflow::fuzz
