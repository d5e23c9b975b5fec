// Ops in bfloat16 on any CPU: their float32 forms, with weights that are widened once and operands that are rounded or
// widened. As exact as the body, and as fast as float32 at most.
#pragma once

#include <utility>
#include <vector>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// The same call with other operands and, where y is bfloat16 (`keeps_result`), the result in scratch memory.
class InFloat32 : public Invocation {
 public:
  InFloat32(Invocation& call, std::vector<View> operands, bool keeps_result)
      : call_(call), operands_(std::move(operands)), keeps_result_(keeps_result) {}
  std::size_t inputs() const override { return operands_.size(); }
  View input(std::size_t i) const override { return operands_.at(i); }
  void* output(std::size_t i, std::span<const std::int64_t> dims) override {
    if (!keeps_result_) return call_.output(i, dims);
    y.assign(dims.begin(), dims.end());
    result = reinterpret_cast<float*>(call_.scratch(static_cast<std::size_t>(element_count(y)) * sizeof(float)));
    return result;
  }
  void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) override {
    call_.parallel(tasks, body);
  }
  std::size_t threads() const override { return call_.threads(); }
  std::byte* scratch(std::size_t bytes) override { return call_.scratch(bytes); }

  Dims y;
  float* result = nullptr;

 private:
  Invocation& call_;
  std::vector<View> operands_;
  bool keeps_result_;
};

/// The call that remains when everything is float32. Its constant is the one of `call`: only its dims may be read.
Call float_form(const Call& call);

/// Cost and implementation of a call of MatMulBf16, ConvBf16 or one of their forms with a result in bfloat16.
double widened_cost(const Call& call, const Target& target);
std::unique_ptr<Implementation> create_widened(const Call& call, const Target& target);

}  // namespace modelflow::cpu
