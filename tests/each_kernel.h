// One call through every kernel that takes it, on every instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>

#include "backends/host_invocation.h"
#include "tests/call_model.h"
#include "tests/close.h"
#include "tests/domains/operands.h"

namespace modelflow {

/// A call with attributes of its own on top of the defaults.
inline domains::Operands call_of(const char* op, const Attrs& attrs) {
  domains::Operands made(1, domains::Special::none);
  made.call.op = op;
  made.call.attrs = find_fused_op(op)->defaults;
  for (const auto& [name, value] : attrs) made.call.attrs.set(name, value);
  return made;
}

/// Output 0 in float32 of every kernel that takes the call, on every instruction set.
inline void with_results(domains::Operands& made, const std::function<void(std::span<const float>)>& look) {
  Verdict fits = find_fused_op(made.call.op)->infer(made.call);
  ASSERT_TRUE(fits) << fits.reason;
  HostThreads threads(2);
  int taken = 0;
  for (const Kernel* kernel : kernels()) {
    if (!kernel->takes(made.call, Target::host())) continue;
    for (const IsaSet isas : {IsaSet(), IsaSet(Isa::avx2), host_isas()}) {
      if (!isas.has(kernel->needs) || !host_isas().has(isas)) continue;
      SCOPED_TRACE(std::string(kernel->name) + " on " + isas.str() + " " + describe(made.call));
      Target target = Target::host();
      target.isas = isas;
      HostInvocation invocation(threads, {made.values().begin(), made.values().end()});
      kernel->create(made.call, target)->run(invocation);
      const Tensor got = invocation.result(0, made.call.outputs[0].dtype);
      const Tensor wide = got.dtype() == DType::bf16 ? widened(got) : got;
      look(wide.as<float>());
      ++taken;
    }
  }
  EXPECT_GT(taken, 0) << describe(made.call);
}

}  // namespace modelflow
