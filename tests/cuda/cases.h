// A sample call of an op in a type of float, and what its body makes of the same numbers.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "backends/cuda/library.h"
#include "backends/floats.h"
#include "modelflow/runtime.h"
#include "src/verify/reference.h"
#include "tests/call_model.h"

namespace modelflow {

/// The call with its floats in this type, and operands that are exact in it.
struct Case {
  Call call;
  std::vector<Tensor> exact, operands;  ///< in float32, in the type
};

inline Tensor any_bytes(const Dims& dims, unsigned seed) {
  std::mt19937 engine(seed);
  return Tensor::make(DType::u8, dims, [&](std::byte* to) {
    std::generate_n(to, element_count(dims), [&] { return static_cast<std::byte>(engine() >> 24U); });
  });
}

/// `spoiled` in the middle, if it is another number than 0.
inline Tensor normal_numbers(const Dims& dims, unsigned seed, DType dtype, float spoiled = 0) {
  if (dtype == DType::u8) return any_bytes(dims, seed);
  if (dtype != DType::f32) throw Error(ErrorKind::internal, "samples have constants where they take no floats");
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  return Tensor::make(DType::f32, dims, [&](std::byte* bytes) {
    auto* const to = reinterpret_cast<float*>(bytes);
    const std::int64_t count = element_count(dims);
    for (std::int64_t i = 0; i < count; ++i) to[i] = normal(engine);
    if (spoiled != 0 && count > 0) to[count / 2] = spoiled;
  });
}

/// `spoiled`: a number in the first operand that is no constant.
inline Case case_of(const Call& sample, DType type, float spoiled = 0) {
  Case made{sample, {}, {}};
  unsigned seed = 1;
  for (Operand& in : made.call.inputs) {
    const Tensor values =
        in.constant ? *in.constant : normal_numbers(in.shape.values(), seed, in.dtype, seed == 1 ? spoiled : 0);
    if (!in.constant) ++seed;
    made.operands.push_back(in_type(values, type));
    made.exact.push_back(in_float32(made.operands.back()));
    if (values.dtype() == DType::f32) in.dtype = type;
  }
  for (std::size_t i = 0; i < made.call.inputs.size(); ++i) {
    Operand& in = made.call.inputs[i];
    if (in.constant) in.constant = &made.operands[i];
  }
  for (Operand& out : made.call.outputs)
    if (out.dtype == DType::f32) out.dtype = type;
  return made;
}

/// Layers of real models take the emulator minutes; smaller samples have the same options.
inline bool too_much_to_emulate(const Call& call, const cuda::DeviceLibrary& library) {
  constexpr double kMost = 5e6;
  const FusedOp& op = *find_fused_op(call.op);
  return std::string_view(library.built) == "emulated" && op.flops && op.flops(call) > kMost;
}

/// The body of the op on those operands, in float32, by ONNX Runtime.
inline std::vector<Tensor> reference(Runtime& runtime, const Call& sample, const Case& made) {
  Call exact = sample;
  Feeds feeds;
  for (std::size_t i = 0; i < exact.inputs.size(); ++i) {
    Operand& in = exact.inputs[i];
    if (in.constant)
      in.constant = &made.exact[i];
    else
      feeds[in.name] = made.exact[i];
  }
  return open_session(runtime, model_of(exact, 17), {.optimize = false})->run(feeds);
}

}  // namespace modelflow
