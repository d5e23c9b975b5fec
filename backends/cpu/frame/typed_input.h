// Reading operands that must have an expected type and shape, what messages say of shapes, and who takes float32 alone.
#pragma once

#include <algorithm>
#include <string>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// "[2,3]", for messages.
inline std::string text(std::span<const std::int64_t> dims) { return Shape::of({dims.begin(), dims.end()}).str(); }

/// The data of an operand that must be of this type and these dims; throws Error(invalid_input) in the name of `op`.
template <class T>
const T* typed_input(const Invocation& call, const std::string& op, std::size_t index,
                     std::span<const std::int64_t> dims) {
  const View view = call.input(index);
  const auto mismatch = [&](const std::string& is) {
    throw Error(ErrorKind::invalid_input, op + ": input " + std::to_string(index) + " is " + is);
  };
  if (view.dtype != dtype_of<T>) mismatch(std::string(name(view.dtype)));
  if (!std::ranges::equal(view.dims, dims)) mismatch(text(view.dims) + ", not " + text(dims));
  return static_cast<const T*>(view.data);
}

/// What a kernel accepts that reads float32 alone and otherwise takes whatever its op allows.
inline Verdict accepts_float32(const Call& call, const Target&) {
  for (const Operand& operand : call.inputs)
    if (operand.dtype != DType::f32) return no("is not float32", operand.name);
  Call copy = call;
  return find_fused_op(call.op)->infer(copy);
}

}  // namespace modelflow::cpu
