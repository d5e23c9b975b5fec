// Ops in bfloat16 computed by their float32 forms.
#include "backends/cpu/gemm/widened.h"

#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/frame/weight_cache.h"
#include "backends/cpu/loops/bf16.h"
#include "backends/cpu/loops/vector_code.h"
#include "src/core/bf16.h"

namespace modelflow::cpu {
namespace {

bool is_conv(const Call& call) { return call.op.starts_with("Conv"); }

bool rounds(const Call& call) { return is_conv(call) || CallAttrs(call).flag("round_a"); }

Tensor widened(const Tensor& weights) {
  const std::size_t count = static_cast<std::size_t>(weights.elements());
  auto bytes = packed_weights(weights, "widened", count * sizeof(float), [&](std::byte* out) {
    const auto* from = reinterpret_cast<const std::uint16_t*>(weights.data());
    std::transform(from, from + count, reinterpret_cast<float*>(out), [](std::uint16_t x) { return from_bf16(x); });
  });
  return {DType::f32, weights.dims(), std::move(bytes)};
}

class Widened : public Implementation {
 public:
  Widened(const Call& call, const Target& target)
      : op_(call.op),
        rounds_(rounds(call)),
        to_bf16_(call.outputs.at(0).dtype == DType::bf16),
        code_(vector_code(target)),
        weights_(widened(*call.in(1).constant)) {
    Call wide = float_form(call);
    wide.inputs[1].constant = &weights_;
    const Choice choice = choose_kernel(wide, target);
    if (!choice.kernel) throw Error(ErrorKind::unsupported, op_ + ": " + choice.reason);
    inner_ = choice.kernel->create(wide, target);
  }

  void run(Invocation& call) const override {
    std::vector<View> operands;
    for (std::size_t i = 0; i < call.inputs(); ++i) operands.push_back(operand(call, i));
    InFloat32 inner(call, std::move(operands), to_bf16_);
    inner_->run(inner);
    if (!to_bf16_) return;
    auto* y = static_cast<std::uint16_t*>(call.output(0, inner.y));
    round_to_bf16(code_, inner.result, static_cast<std::size_t>(element_count(inner.y)), y, call);
  }

 private:
  View operand(Invocation& call, std::size_t i) const {
    const View given = call.input(i);
    if (i == 1) {
      if (given.dtype != DType::bf16) fail("the weights are " + std::string(name(given.dtype)));
      if (!std::ranges::equal(given.dims, weights_.dims())) fail("the weights are not those of the model");
      return {DType::f32, weights_.dims(), weights_.data()};
    }
    if (given.dtype != DType::f32 && given.dtype != DType::bf16)
      fail("input " + std::to_string(i) + " is " + std::string(name(given.dtype)));
    if (given.dtype == DType::f32 && (i > 0 || !rounds_)) return given;
    return {DType::f32, given.dims, rounded_to_bf16(code_, given, call)};
  }

  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::invalid_input, op_ + ": " + what); }

  std::string op_;
  bool rounds_, to_bf16_;
  const VectorCode& code_;
  Tensor weights_;
  std::unique_ptr<Implementation> inner_;
};

}  // namespace

Call float_form(const Call& call) {
  Call wide = call;
  wide.op = is_conv(call) ? "Conv" : "MatMul";
  wide.attrs.erase("round_a");
  for (auto* operands : {&wide.inputs, &wide.outputs})
    for (Operand& operand : *operands) operand.dtype = DType::f32;
  return wide;
}

double widened_cost(const Call& call, const Target& target) {
  const Call wide = float_form(call);
  const Choice choice = choose_kernel(wide, target);
  const double rounding = rounds(call) ? target.compute(3 * call.in(0).shape.known_elements(), 0.2) : 0;
  return rounding + (choice.kernel ? choice.kernel->cost(wide, target) : 0);
}

std::unique_ptr<Implementation> create_widened(const Call& call, const Target& target) {
  return std::make_unique<Widened>(call, target);
}

}  // namespace modelflow::cpu
