// Reads and checks calls of MatMul, and estimates their work.
#include "backends/cpu/gemm/matmul_problem.h"

#include <algorithm>

#include "backends/activation.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/ops/work.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulAttrs;

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::invalid_input, "MatMul: " + message); }

const float* floats(const View& view, const char* what) {
  if (view.dtype != DType::f32) fail(std::string(what) + " is " + std::string(name(view.dtype)) + ", not float32");
  return static_cast<const float*>(view.data);
}

// Strides of the batch dims, in matrices; 0 where the operand is repeated.
Dims batch_strides(std::span<const std::int64_t> dims, std::size_t rank) {
  Dims strides(rank - 2, 0);
  std::int64_t step = 1;
  for (std::size_t i = dims.size() - 2; i-- > 0;) {
    if (dims[i] != 1) strides[i + rank - dims.size()] = step;
    step *= dims[i];
  }
  return strides;
}

Dims batch_dims(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Dims y(rank);
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::int64_t left = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const std::int64_t right = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (left != right && left != 1 && right != 1)
      fail("batch dims of " + text(a) + " and " + text(b) + " do not broadcast");
    y[i] = left == 1 ? right : left;
  }
  return y;
}

}  // namespace

MatMulProblem::MatMulProblem(const MatMulAttrs& attrs, const Invocation& call) {
  if (call.inputs() != attrs.inputs()) fail("takes " + std::to_string(attrs.inputs()) + " inputs");
  const View av = call.input(0), bv = call.input(1);
  a = floats(av, "a");
  b = floats(bv, "b");
  if (av.dims.size() < 2 || bv.dims.size() < 2)
    fail("a is " + text(av.dims) + ", b is " + text(bv.dims) + ": rank below 2");
  const std::size_t ra = av.dims.size(), rb = bv.dims.size();
  m = static_cast<std::size_t>(av.dims[ra - 2 + attrs.trans_a]);
  k = static_cast<std::size_t>(av.dims[ra - 1 - attrs.trans_a]);
  n = static_cast<std::size_t>(bv.dims[rb - 1 - attrs.trans_b]);
  if (static_cast<std::size_t>(bv.dims[rb - 2 + attrs.trans_b]) != k) {
    fail("inner dims of " + text(av.dims) + " and " + text(bv.dims) + " differ");
  }
  y = batch_dims(av.dims, bv.dims);
  const Dims batches(y.begin(), y.end() - 2);
  y[y.size() - 2] = static_cast<std::int64_t>(m);
  y[y.size() - 1] = static_cast<std::int64_t>(n);
  if (attrs.has_bias) {
    const View view = call.input(2);
    (attrs.row_bias ? row_bias : bias) = floats(view, "bias");
    const Dims wanted = attrs.row_bias ? Dims{y[y.size() - 2], 1} : Dims{y.back()};
    if (!std::ranges::equal(view.dims, wanted)) fail("bias is " + text(view.dims) + ", the result " + text(y));
  }
  if (attrs.residual != ops::Residual::none) {
    const View view = call.input(attrs.residual_index());
    residual = floats(view, "residual");
    if (text(view.dims) != text(y)) fail("residual is " + text(view.dims) + ", the result " + text(y));
  }
  batch = static_cast<std::size_t>(element_count(batches));
  if (element_count(bv.dims.first(rb - 2)) == 1 && !attrs.trans_a && !attrs.row_bias) {
    m *= batch;
    batch = batch ? 1 : 0;
    if (batch) offsets.emplace_back(0, 0);
    return;
  }
  const Dims sa = batch_strides(av.dims, y.size()), sb = batch_strides(bv.dims, y.size());
  offsets.reserve(batch);
  for (std::size_t i = 0; i < batch; ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), ia = 0, ib = 0;
    for (std::size_t axis = batches.size(); axis-- > 0;) {
      const std::int64_t at = rest % batches[axis];
      rest /= batches[axis];
      ia += at * sa[axis];
      ib += at * sb[axis];
    }
    offsets.emplace_back(static_cast<std::size_t>(ia) * m * k, static_cast<std::size_t>(ib) * k * n);
  }
}

Verdict accepts_matmul(const Call& call, const Target&) {
  if (call.inputs.size() < 2) return no("needs two inputs");
  for (const Operand& operand : call.inputs) {
    if (operand.dtype != DType::f32)
      return no("is " + std::string(name(operand.dtype)) + ", not float32", operand.name);
  }
  try {
    const MatMulAttrs attrs(call);
    if (call.inputs.size() != attrs.inputs())
      return no("the attributes ask for " + std::to_string(attrs.inputs()) + " inputs");
    activation_of(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const Operand& operand = call.in(i);
    if (operand.shape.has_rank() && operand.shape.rank() < 2) return no("rank below 2", operand.name);
  }
  return yes();
}

double matmul_flops(const Call& call) {
  const double results = call.outputs.at(0).shape.known_elements();
  return ops::product_flops(call) + results * activation_flops(activation_of(call).kind);
}

double matmul_bytes(const Call& call) {
  double sum = 0;
  for (const Operand& operand : call.inputs) sum += operand.shape.known_elements();
  for (const Operand& operand : call.outputs) sum += operand.shape.known_elements();
  return 4 * sum;
}

}  // namespace modelflow::cpu
