// Which numbers oneDNN computes right: those that are neither infinite, NaN nor so large that products and sums of them
// may be.
#pragma once

#include <memory>
#include <mutex>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Whether all of these float32 or bfloat16 numbers are below 2^64 in size: neither infinite nor NaN, nor so large that
/// products of two of them, or sums of those, may be. oneDNN makes numbers of NaN in most activations and reads behind
/// the end of rows, where 0 times infinity is NaN: other kernels take numbers that are not moderate.
bool moderate(const View& numbers, Invocation& call);
bool moderate(const Tensor& numbers);
/// The same of all operands of a call but the weights (operand 1), which their kernel knows.
bool moderate_operands(Invocation& call);

/// A kernel with constant weights (operand 1) that takes moderate numbers only, and another kernel for all others.
class ModerateOnly : public Implementation {
 protected:
  ModerateOnly(const Call& call, const Target& target);
  /// Whether the weights and these operands are moderate.
  bool takes(Invocation& call) const { return moderate_ && moderate_operands(call); }
  /// What another kernel makes of the call; it is created when it is wanted for the first time, always the same one.
  void run_by(const Kernel& other, Invocation& call) const;

  const Tensor weights_;

 private:
  bool moderate_;  ///< the weights
  Call call_;
  Target target_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<Implementation> other_;
};

}  // namespace modelflow::cpu
