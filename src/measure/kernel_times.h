// How long each kernel takes for a call, beside the same in standard ops.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "modelflow/kernel.h"
#include "modelflow/model.h"
#include "modelflow/runtime.h"
#include "src/measure/roofline.h"

namespace modelflow {

/// One way to run a call in ONNX Runtime.
struct KernelTime {
  std::string kernel;        ///< empty: the body of the op in standard ops, optimized by the runtime
  double seconds = 0;        ///< of a run of a session of this one node
  double speedup = 1;        ///< how many times as fast as the body: the median of ratios of neighbouring blocks
  double low = 1, high = 1;  ///< its 95 % interval
};

/// The body first, then these kernels, in turns within `seconds` in all (but at least three each). Operands that the
/// call has no constants for are made up. `threads` 0: all cores. Bodies whose sums ONNX Runtime would cut on this
/// machine, as it does without VNNI, are exact like the kernels.
std::vector<KernelTime> time_kernels(Runtime& runtime, const Call& call, const std::vector<const Kernel*>& kernels,
                                     int threads, double seconds);

/// The kernels of this machine that accept a call, best first.
std::vector<const Kernel*> kernels_for(const Call& call);

/// The fused calls of a model on inputs of these extents, each once; extents that do not follow from these are left
/// open. They point to the constants of `model`.
struct ModelCalls {
  Model model;
  std::vector<Call> calls;
};
ModelCalls fused_calls(const Model& model, const std::map<std::string, Dims>& inputs);

/// "Conv [1,56,56,64] [64,64,3,3]* activation=Relu": operands (* constants) and what is not as usual.
std::string call_text(const Call& call);
/// Bytes of its operands and results.
double bytes_of(const Call& call);

}  // namespace modelflow
