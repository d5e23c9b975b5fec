// Kernels of a GPU on cases that are drawn from the domains of their ops, in every type of float, beside the bodies:
// over the emulator (MODELFLOW_CUDA_LIBRARY names it), where there is no GPU.
//
// MODELFLOW_CASES: how many cases per op and type at most; MODELFLOW_SEED: other cases.
#include <gtest/gtest.h>

#include <iostream>
#include <tuple>

#include "backends/cuda/invocation.h"
#include "modelflow/kernel.h"
#include "tests/cuda/cases.h"
#include "tests/cuda/device_kernels.h"
#include "tests/cuda/numbers.h"
#include "tests/domains/cases.h"

namespace modelflow {
namespace {

using domains::Operands;
using domains::setting;

/// What docs/gpu.md leaves open: keys that a causal mask hides from a whole tile of queries are not read, whatever they
/// hold, and weights that vanish in 16 bits make NaN of an infinity. And numbers that are infinite in float16, between
/// which and their neighbours along one axis ONNX Runtime makes NaN of other channels (tests/domains/images.cpp).
bool is_left_open(const Operands& operands, DType type) {
  using domains::Special;
  const Special special = operands.special();
  if (operands.call.op == "Upsample")
    return type == DType::f16 && special == Special::huge && operands.call.in(0).shape.rank() == 3;
  if (operands.call.op != "Attention" || special == Special::none || special == Special::tiny) return false;
  return operands.call.attrs.integer("causal") != 0 || (type != DType::f32 && special != Special::nan);
}

class DeviceGenerated : public DeviceKernels {
 protected:
  /// What is wrong with the kernel on this case, or nothing.
  std::string run(const Kernel& kernel, const Case& made, const Target& target, const std::vector<Tensor>& want) {
    try {
      cuda::DeviceInvocation invocation(*library_, made.operands);
      kernel.create(made.call, target)->run(invocation);
      for (std::size_t i = 0; i < want.size(); ++i) {
        const Tensor got = invocation.result(i, made.call.outputs[i].dtype);
        if (std::string apart = cuda::difference(want[i], got); !apart.empty()) return apart;
      }
    } catch (const Error& error) {
      return std::string("throws ") + error.what();
    }
    return "";
  }
};

TEST_P(DeviceGenerated, EqualsTheBody) {
  const auto [kernel, type] = GetParam();
  if (!kernel->fits(target_)) GTEST_SKIP() << "for other devices";
  const std::vector<domains::Case> cases = domains::cases(kernel->op, {.seed = setting("MODELFLOW_SEED", 1)});
  const std::size_t most = setting("MODELFLOW_CASES", 25), stride = std::max<std::size_t>(cases.size() / most, 1);
  int taken = 0, wrong = 0, refused = 0;
  for (std::size_t i = 0; i < cases.size(); i += stride) {
    const std::unique_ptr<Operands> operands = domains::made(cases[i]);
    const Case made = typed_case(operands->call, operands->values(), type);
    if (!kernel->takes(made.call, target_) || too_much_to_emulate(made.call, *library_)) continue;
    if (is_left_open(*operands, type)) continue;
    std::vector<Tensor> want;
    try {
      want = reference(*runtime_, operands->call, made);
    } catch (const Error&) {  // a model of these ops would not run either
      ++refused;
      continue;
    }
    ++taken;
    const std::string apart = run(*kernel, made, in_turn(i / stride), want);
    if (!apart.empty() && ++wrong <= 3)
      ADD_FAILURE() << apart << "\n  " << describe(cases[i]) << "\n  " << describe(made.call);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(taken, 0);
  std::cout << kernel->name << ": " << taken << " cases, " << refused << " refused by the runtime\n";
}

INSTANTIATE_TEST_SUITE_P(Kernels, DeviceGenerated, device_kernels_in_every_type(), kernel_and_type);

}  // namespace
}  // namespace modelflow
