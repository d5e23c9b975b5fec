// MatMulNBits on any CPU: MatMul in float32 by weights that are made floats once. For models made for a GPU: as exact
// as there, and no faster than float32.
#include <cmath>

#include "backends/call_attrs.h"
#include "backends/cpu/gemm/kernels.h"
#include "backends/cpu/gemm/widened.h"
#include "backends/ops/matmul_nbits_attrs.h"

namespace modelflow::cpu {
namespace {

using ops::MatMulNBitsAttrs;

/// The weights as f32 [N, K].
Tensor as_floats(const MatMulNBitsAttrs& attrs, const Tensor& steps, const Tensor& scales) {
  const std::int64_t n = steps.dims()[0], blocks = steps.dims()[1];
  return Tensor::make(DType::f32, {n, blocks * attrs.block}, [&](std::byte* out) {
    auto* w = reinterpret_cast<float*>(out);
    const auto* b = reinterpret_cast<const std::uint8_t*>(steps.data());
    for (const float scale : scales.as<float>())
      for (std::int64_t i = 0; i < attrs.bytes(); ++i, ++b) {
        if (attrs.bits == 4) *w++ = (static_cast<float>(*b & 15) - attrs.middle()) * scale;
        *w++ = (static_cast<float>(attrs.bits == 4 ? *b >> 4 : *b) - attrs.middle()) * scale;
      }
  });
}

/// The call that remains when the weights are floats. Its constant is the one of `call`: only its dims may be read.
Call as_matmul(const Call& call) {
  const MatMulNBitsAttrs attrs(call);
  Call product = call;
  product.op = "MatMul";
  for (const char* name : {"bits", "block"}) product.attrs.erase(name);
  product.attrs.set("trans_b", 1);
  product.inputs.erase(product.inputs.begin() + 2);
  const Dims b = call.in(1).shape.values();
  product.inputs[1].dtype = DType::f32;
  product.inputs[1].shape = Shape::of({b[0], b[1] * attrs.block});
  return product;
}

class MatMulNBits : public Implementation {
 public:
  MatMulNBits(const Call& call, const Target& target)
      : inputs_(call.inputs.size()),
        weights_(as_floats(MatMulNBitsAttrs(call), *call.in(1).constant, *call.in(2).constant)) {
    Call product = as_matmul(call);
    product.inputs[1].constant = &weights_;
    const Choice choice = choose_kernel(product, target);
    if (!choice.kernel) throw Error(ErrorKind::unsupported, "MatMulNBits: " + choice.reason);
    inner_ = choice.kernel->create(product, target);
  }

  void run(Invocation& call) const override {
    if (call.inputs() != inputs_)
      throw Error(ErrorKind::invalid_input, "MatMulNBits: takes " + std::to_string(inputs_) + " inputs");
    std::vector<View> operands = {call.input(0), {DType::f32, weights_.dims(), weights_.data()}};
    for (std::size_t i = 3; i < inputs_; ++i) operands.push_back(call.input(i));
    InFloat32 product(call, std::move(operands), false);
    inner_->run(product);
  }

 private:
  std::size_t inputs_;
  Tensor weights_;
  std::unique_ptr<Implementation> inner_;
};

Verdict accepts(const Call& call, const Target& target) {
  Call known = call;
  if (Verdict v = find_fused_op(call.op)->infer(known); !v) return v;
  for (const std::size_t i : {1, 2}) {
    const Operand& operand = call.in(i);
    const DType want = i == 1 ? DType::u8 : DType::f32;
    if (!operand.constant) return no("is not constant", operand.name);
    if (operand.constant->dtype() != want) return no("is not " + std::string(name(want)), operand.name);
  }
  const Choice choice = choose_kernel(as_matmul(call), target);
  return choice.kernel ? yes() : no(choice.reason);
}

double cost(const Call& call, const Target& target) {
  const Call product = as_matmul(call);
  const Choice choice = choose_kernel(product, target);
  return choice.kernel ? choice.kernel->cost(product, target) : HUGE_VAL;
}

}  // namespace

const Kernel matmul_nbits_widened = {
    .op = "MatMulNBits",
    .name = "cpu.matmul_nbits_widened",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<MatMulNBits>(call, target);
    },
};

}  // namespace modelflow::cpu
