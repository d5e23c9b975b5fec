// Writes random numbers as nodes.
#include "tests/fuzz/draws.h"

#include "tests/fuzz/elements.h"

namespace modelflow::fuzz {

double last_digit(DType dtype) {
  return dtype == DType::f64 ? 0x1p-53 : dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
}

Value* Noise::draws(Graph& graph, Value& like, double low, double high, Node* before) {
  const bool wide = like.dtype() == DType::f32 || like.dtype() == DType::f64;
  if (opset_ >= 22) return hashed(graph, like, low, high, before);
  const DType dtype = wide ? like.dtype() : DType::f32;
  if (dtype == DType::f64) {  // the attributes are float32, which has no number between 1 and 1 + 1e-16
    Value* unit = graph.add("RandomUniformLike", {&like}, {.before = before, .attrs = random(-1, 1, dtype)}).output();
    Value* scaled = graph.add("Mul", {unit, constant(graph, dtype, (high - low) / 2)}, {.before = before}).output();
    return graph.add("Add", {scaled, constant(graph, dtype, (high + low) / 2)}, {.before = before}).output();
  }
  Value* made = graph.add("RandomUniformLike", {&like}, {.before = before, .attrs = random(low, high, dtype)}).output();
  if (wide) return made;
  return graph.add("Cast", {made}, {.before = before, .attrs = {{"to", static_cast<std::int64_t>(like.dtype())}}})
      .output();
}

Value* Noise::constant(Graph& graph, DType dtype, double value) {
  return &graph.add_constant(tensor_of(dtype, {}, {value}), "noise");
}

/// Where ONNX Runtime has no RandomUniformLike (opset 22 on): digits of the value's logarithm far behind its point,
/// which tell large values apart as well as small ones, and of the element's place, which tells equal values apart.
Value* Noise::hashed(Graph& graph, Value& like, double low, double high, Node* before) {
  const DType dtype = like.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const auto op = [&](std::string_view name, std::vector<Value*> inputs, Attrs attrs = {}) {
    return graph.add(name, std::move(inputs), {.before = before, .attrs = std::move(attrs)}).output();
  };
  const auto cast = [&](Value* from, DType to) { return op("Cast", {from}, {{"to", static_cast<std::int64_t>(to)}}); };
  Value* wide = dtype == like.dtype() ? &like : cast(&like, dtype);
  Value* size = op("Log", {op("Abs", {wide})});
  Value* by_size = op("Mul", {size, constant(graph, dtype, dice_.uniform(1000, 30000))});
  Value* zero = constant(graph, DType::i64, 0);
  Value* place = cast(op("Range", {zero, op("Size", {&like}), constant(graph, DType::i64, 1)}), dtype);
  Value* by_place = op("Mul", {place, constant(graph, dtype, dice_.uniform(0.3, 0.7))});
  Value* shaped = op("Reshape", {by_place, op("Shape", {&like})}, {{"allowzero", std::int64_t{1}}});
  Value* finite = op("Where", {op("IsInf", {by_size}), constant(graph, dtype, 0), by_size});
  Value* large = op("Add", {finite, shaped});
  Value* digits = op("Sub", {large, op("Floor", {large})});
  Value* unit = op("Where", {op("IsNaN", {digits}), constant(graph, dtype, 0.5), digits});
  Value* scaled = op("Mul", {unit, constant(graph, dtype, high - low)});
  Value* drawn = op("Add", {scaled, constant(graph, dtype, low)});
  return dtype == like.dtype() ? drawn : cast(drawn, like.dtype());
}

Attrs Noise::random(double low, double high, DType dtype) {
  return {{"low", static_cast<float>(low)},
          {"high", static_cast<float>(high)},
          {"seed", static_cast<float>(dice_.below(1U << 20))},
          {"dtype", static_cast<std::int64_t>(dtype)}};
}

}  // namespace modelflow::fuzz
