// Reads and checks calls of QMatMul, QMatMul4 and MatMulBf16, and estimates their work.
#include "backends/cpu/gemm/low_precision_problem.h"

#include <algorithm>
#include <cmath>

#include "backends/activation.h"
#include "backends/call_attrs.h"
#include "backends/cpu/frame/typed_input.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulBf16Attrs;
using ops::QMatMul4Attrs;
using ops::QMatMulAttrs;

/// Operands of one call, checked as they are read.
struct Reader {
  std::string_view op;
  const Invocation& call;

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::invalid_input, std::string(op) + ": " + message);
  }
  void count(std::size_t inputs) const {
    if (call.inputs() != inputs) fail("takes " + std::to_string(inputs) + " inputs");
  }
  template <class T>
  const T* data(std::size_t i, const char* what, DType want = dtype_of<T>) const {
    const View view = call.input(i);
    if (view.dtype == want) return static_cast<const T*>(view.data);
    fail(std::string(what) + " is " + std::string(name(view.dtype)) + ", not " + std::string(name(want)));
  }
  const float* floats(std::size_t i, const char* what, const Dims& dims) const {
    const View view = call.input(i);
    if (text(view.dims) != text(dims)) fail(std::string(what) + " is " + text(view.dims) + ", not " + text(dims));
    return data<float>(i, what);
  }
};

/// y, m, n and k of a product by weights of rank 2.
template <class Problem>
void read_extents(const Reader& read, bool trans_b, Problem& p) {
  const View a = read.call.input(0), b = read.call.input(1);
  if (a.dims.size() < 2 || b.dims.size() != 2) read.fail("a is " + text(a.dims) + ", b is " + text(b.dims));
  p.k = static_cast<std::size_t>(a.dims.back());
  p.n = static_cast<std::size_t>(b.dims[1 - trans_b]);
  if (static_cast<std::size_t>(b.dims[trans_b]) != p.k || p.k == 0)
    read.fail("inner dims of " + text(a.dims) + " and " + text(b.dims) + " differ or are 0");
  p.y.assign(a.dims.begin(), a.dims.end());
  p.m = static_cast<std::size_t>(element_count(std::span(p.y).first(p.y.size() - 1)));
  p.y.back() = static_cast<std::int64_t>(p.n);
}

double elements(const Shape& shape) {
  double product = 1;
  for (std::size_t i = 0; shape.has_rank() && i < shape.rank(); ++i)
    product *= shape[i].known() ? static_cast<double>(shape[i].value()) : 1;
  return product;
}

template <class A>
Verdict accepts(const Call& call, DType weights, std::size_t rank) {
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const DType want = i == 1 ? weights : DType::f32, is = call.in(i).dtype;
    if (i == 0 && is == DType::bf16 && weights == DType::bf16 && CallAttrs(call).flag("round_a")) continue;
    if (is != want) return no("is " + std::string(name(is)) + ", not " + std::string(name(want)), call.in(i).name);
  }
  try {
    const A attrs(call);
    if (call.inputs.size() != attrs.inputs())
      return no("the attributes ask for " + std::to_string(attrs.inputs()) + " inputs");
    activation_of(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  const Shape &a = call.in(0).shape, &b = call.in(1).shape;
  if (a.has_rank() && a.rank() < 2) return no("rank below 2", call.in(0).name);
  return b.has_rank() && b.rank() != rank ? no("is not of rank " + std::to_string(rank), call.in(1).name) : yes();
}

// Rows of y times columns, k deep. `per_number`: operations that bring a number of a into low precision.
ProductWork work(const Call& call, double n, double k, double per_number = 5) {
  ProductWork work;
  const double rows = elements(call.outputs.at(0).shape) / std::max(n, 1.0);
  work.steps = 2 * rows * n * k;
  work.epilogue = per_number * rows * k + rows * n * (4 + activation_flops(activation_of(call).kind));
  const auto bytes = [](const Operand& operand, int otherwise) {
    return (operand.dtype == DType::bf16 ? 2 : otherwise) * elements(operand.shape);
  };
  for (const Operand& operand : call.outputs) work.bytes += bytes(operand, 4);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) work.bytes += bytes(call.in(i), i == 1 ? 1 : 4);
  return work;
}

}  // namespace

QMatMulProblem::QMatMulProblem(const QMatMulAttrs& attrs, const Invocation& call) {
  const Reader read{"QMatMul", call};
  read.count(attrs.inputs());
  a = read.data<float>(0, "a");
  b = read.data<std::int8_t>(1, "b");
  read_extents(read, attrs.trans_b, *this);
  b_scale = read.floats(2, "b_scale", {y.back()});
  if (attrs.has_zero_point) b_zero = read.floats(3, "b_zero_point", {y.back()});
  if (attrs.has_bias) bias = read.floats(attrs.bias_index(), "bias", {y.back()});
  if (attrs.has_residual()) residual = read.floats(attrs.residual_index(), "residual", y);
}

QMatMul4Problem::QMatMul4Problem(const QMatMul4Attrs& attrs, const Invocation& call) {
  const Reader read{"QMatMul4", call};
  read.count(attrs.inputs());
  const View av = call.input(0), bv = call.input(1);
  a = read.data<float>(0, "a");
  b = read.data<std::uint8_t>(1, "b");
  if (av.dims.size() < 2 || bv.dims.size() != 3) read.fail("a is " + text(av.dims) + ", b is " + text(bv.dims));
  k = static_cast<std::size_t>(av.dims.back());
  n = static_cast<std::size_t>(bv.dims[0]);
  blocks = static_cast<std::size_t>(bv.dims[1]);
  if (static_cast<std::size_t>(bv.dims[2]) * 2 != attrs.block || blocks * attrs.block != k || k == 0)
    read.fail("a is " + text(av.dims) + ", b is " + text(bv.dims) + " in blocks of " + std::to_string(attrs.block));
  y.assign(av.dims.begin(), av.dims.end());
  m = static_cast<std::size_t>(element_count(std::span(y).first(y.size() - 1)));
  y.back() = static_cast<std::int64_t>(n);
  const Dims per_block = {bv.dims[0], bv.dims[1]};
  b_scale = read.floats(2, "b_scale", per_block);
  if (attrs.has_zero_point) b_zero = read.floats(3, "b_zero_point", per_block);
  if (attrs.has_bias) bias = read.floats(attrs.bias_index(), "bias", {y.back()});
  if (attrs.has_residual()) residual = read.floats(attrs.residual_index(), "residual", y);
}

MatMulBf16Problem::MatMulBf16Problem(const MatMulBf16Attrs& attrs, const Invocation& call) {
  const Reader read{"MatMulBf16", call};
  read.count(attrs.inputs());
  a = call.input(0);
  if (a.dtype != DType::bf16 || !attrs.round_a) read.data<float>(0, "a");
  b = read.data<std::uint16_t>(1, "b", DType::bf16);
  read_extents(read, attrs.trans_b, *this);
  if (attrs.has_bias) bias = read.floats(2, "bias", {y.back()});
  if (attrs.has_residual()) residual = read.floats(attrs.residual_index(), "residual", y);
}

TensorSteps tensor_steps(const Range& range) {
  const auto [low, high] = range;
  const float scale = low == high ? 1 : (high - low) / 255;
  const float zero = -low / scale;  // not a number where a is infinite or none
  return {scale, static_cast<std::int32_t>(std::nearbyint(zero > 0 ? std::min(zero, 255.0f) : 0.0f))};
}

Verdict accepts_qmatmul(const Call& call, const Target&) { return accepts<QMatMulAttrs>(call, DType::i8, 2); }

Verdict accepts_qmatmul4(const Call& call, const Target&) { return accepts<QMatMul4Attrs>(call, DType::u8, 3); }

Verdict accepts_matmul_bf16(const Call& call, const Target&) { return accepts<MatMulBf16Attrs>(call, DType::bf16, 2); }

ProductWork matmul_bf16_work(const Call& call) {
  const Shape& b = call.in(1).shape;
  const double n = elements(Shape({b[1 - CallAttrs(call).flag("trans_b")]}));
  return work(call, n, elements(b) / std::max(n, 1.0), CallAttrs(call).flag("round_a") ? 3 : 0);
}

double rows_of_product(const Call& call, double unknown) {
  const Shape& a = call.in(0).shape;
  if (!a.known() || a.rank() == 0) return unknown;
  return a.known_elements() / std::max(static_cast<double>(a[a.rank() - 1].value()), 1.0);
}

ProductWork qmatmul_work(const Call& call) {
  const double n = elements(call.in(2).shape);
  return work(call, n, elements(call.in(1).shape) / std::max(n, 1.0));
}

ProductWork qmatmul4_work(const Call& call) {
  const Shape& b = call.in(1).shape;
  const double n = b.has_rank() && b.rank() == 3 && b[0].known() ? static_cast<double>(b[0].value()) : 1;
  return work(call, n, 2 * elements(b) / std::max(n, 1.0));
}

Verdict accepts_rounded_product(const Call& call, const Target& target) {
  if (Verdict v = accepts_matmul_bf16(call, target); !v) return v;
  if (!MatMulBf16Attrs(call).round_a) return no("is to stay in float32", call.in(0).name);
  if (rows_of_product(call, kFewRows) < kFewRows) return no("has few rows", call.in(0).name);
  const Tensor* b = call.in(1).constant;
  return b && b->elements() > 0 ? yes() : no("is not constant, or empty", call.in(1).name);
}

double bf16_gain(const Target& target, double depth) {
  if (!target.has(Isa::avx512_bf16)) return 1;
  return target.has(Isa::amx) ? std::clamp(16 * depth / 32, 1.0, 16.0) : 2;
}

double rounded_product_cost(const Call& call, const Target& target) {
  const ProductWork work = matmul_bf16_work(call);
  const Dims& b = call.in(1).constant->dims();
  const double gain = bf16_gain(target, static_cast<double>(b[CallAttrs(call).flag("trans_b")]));
  return std::max(target.compute(work.steps / gain, 0.5) + target.compute(work.epilogue), target.stream(work.bytes));
}

}  // namespace modelflow::cpu
