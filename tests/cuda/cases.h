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

/// The call on these operands in this type, but for those that are single.
template <class Tensors>
Case typed_case(const Call& call, const Tensors& values, DType type) {
  Case made{in_type(call, type), {}, {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    made.operands.push_back(in_type(values[i], made.call.inputs[i].dtype));
    made.exact.push_back(in_float32(made.operands.back()));
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    if (Operand& in = made.call.inputs[i]; in.constant) in.constant = &made.operands[i];
  return made;
}

/// `spoiled`: a number in the first operand that is no constant.
inline Case case_of(const Call& sample, DType type, float spoiled = 0) {
  std::vector<Tensor> values;
  unsigned seed = 1;
  for (const Operand& in : sample.inputs) {
    values.push_back(in.constant ? *in.constant
                                 : normal_numbers(in.shape.values(), seed, in.dtype, seed == 1 ? spoiled : 0));
    if (!in.constant) ++seed;
  }
  return typed_case(sample, values, type);
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
