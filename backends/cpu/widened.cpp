// MatMulBf16 and ConvBf16 on any CPU: their float32 forms with weights that were widened once, and a rounded first
// operand where the op says so. As exact as the body, and as fast as float32 at most.
#include <algorithm>

#include "backends/cpu/bf16.h"
#include "backends/cpu/conv_problem.h"
#include "backends/cpu/qmatmul_problem.h"
#include "backends/cpu/weight_cache.h"
#include "backends/kernels.h"
#include "modelflow/bf16.h"

namespace modelflow::cpu {
namespace {

bool rounds(const Call& call) { return call.op == "ConvBf16" || call.attrs.integer("round_a") != 0; }

/// The call that remains when everything is float32. Its constant is the one of `call`: only its dims may be read.
Call float_form(const Call& call) {
  Call wide = call;
  wide.op = call.op == "ConvBf16" ? "Conv" : "MatMul";
  wide.attrs.erase("round_a");
  wide.inputs.at(1).dtype = DType::f32;
  return wide;
}

Tensor widened(const Tensor& weights) {
  const std::size_t count = static_cast<std::size_t>(weights.elements());
  auto bytes = packed_weights(weights, "widened", count * sizeof(float), [&](std::byte* out) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(weights.data());
    std::transform(from, from + count, reinterpret_cast<float*>(out), [](std::uint16_t x) { return from_bf16(x); });
  });
  return {DType::f32, weights.dims(), std::move(bytes)};
}

/// The same call with other operands 0 and 1.
class WithOperands : public Invocation {
 public:
  WithOperands(Invocation& call, View first, View second) : call_(call), first_(first), second_(second) {}
  std::size_t inputs() const override { return call_.inputs(); }
  View input(std::size_t i) const override { return i == 0 ? first_ : i == 1 ? second_ : call_.input(i); }
  void* output(std::size_t i, std::span<const std::int64_t> dims) override { return call_.output(i, dims); }
  void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) override {
    call_.parallel(tasks, body);
  }
  std::size_t threads() const override { return call_.threads(); }
  std::byte* scratch(std::size_t bytes) override { return call_.scratch(bytes); }

 private:
  Invocation& call_;
  View first_, second_;
};

class Widened : public Implementation {
 public:
  Widened(const Call& call, const Target& target)
      : op_(call.op), rounds_(rounds(call)), target_(target), weights_(widened(*call.in(1).constant)) {
    Call wide = float_form(call);
    wide.inputs[1].constant = &weights_;
    const Choice choice = choose_kernel(wide, target);
    if (!choice.kernel) throw Error(ErrorKind::unsupported, op_ + ": " + choice.reason);
    inner_ = choice.kernel->create(wide, target);
  }

  void run(Invocation& call) const override {
    View first = call.input(0);
    const View second = call.input(1);
    if (first.dtype != DType::f32) fail("input 0 is " + std::string(name(first.dtype)));
    if (second.dtype != DType::bf16) fail("the weights are " + std::string(name(second.dtype)));
    if (!std::ranges::equal(second.dims, weights_.dims())) fail("the weights are not those of the model");
    const auto count = static_cast<std::size_t>(element_count(first.dims));
    if (rounds_ && count > 0) first.data = rounded_to_bf16(static_cast<const float*>(first.data), count, target_, call);
    WithOperands inner(call, first, {DType::f32, weights_.dims(), weights_.data()});
    inner_->run(inner);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::invalid_input, op_ + ": " + what); }

  std::string op_;
  bool rounds_;
  Target target_;
  Tensor weights_;
  std::unique_ptr<Implementation> inner_;
};

Verdict accepts_product(const Call& call) {
  if (Verdict v = accepts_matmul_bf16(call); !v) return v;
  const Tensor* b = call.in(1).constant;
  if (!b || b->elements() == 0) return no("is not constant, or empty", call.in(1).name);
  return onednn_matmul.accepts(float_form(call));
}

Verdict accepts_convolution(const Call& call) {
  if (Verdict v = accepts_conv_bf16(call, 3); !v) return v;
  return onednn_conv.accepts(float_form(call));
}

double cost(const Call& call, const Target& target) {
  const Call wide = float_form(call);
  const Choice choice = choose_kernel(wide, target);
  const double rounding = rounds(call) ? target.compute(3 * call.in(0).shape.known_elements(), 0.2) : 0;
  return rounding + (choice.kernel ? choice.kernel->cost(wide, target) : 0);
}

std::unique_ptr<Implementation> create(const Call& call, const Target& target) {
  return std::make_unique<Widened>(call, target);
}

}  // namespace

const Kernel matmul_bf16_widened = {
    .op = "MatMulBf16",
    .name = "cpu.matmul_bf16_widened",
    .accepts = accepts_product,
    .cost = cost,
    .create = create,
};

const Kernel conv_bf16_widened = {
    .op = "ConvBf16",
    .name = "cpu.conv_bf16_widened",
    .accepts = accepts_convolution,
    .cost = cost,
    .create = create,
};

}  // namespace modelflow::cpu
