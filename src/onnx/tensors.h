// Tensors from and to protobuf.
#pragma once

#include "src/onnx/external.h"
#include "src/onnx/proto.h"

namespace modelflow::proto {

/// The tensor of `proto`, whose bytes are moved out where they can be. Throws Error(invalid_input) naming the tensor.
Tensor read_tensor(TensorProto& proto, ExternalFiles& files);
/// Whether read_tensor can represent this element type (float6 and what comes later it cannot).
bool readable(const TensorProto& proto);
/// Replaces external data by raw_data, for tensors that are kept as protos.
void load_external(TensorProto& proto, ExternalFiles& files);
/// dtype, dims and bytes (raw_data, or string_data).
void write_tensor(const Tensor& tensor, TensorProto& proto);
/// As write_tensor with the bytes in the typed field (float_data, ...) that `proto` prescribes for the dtype.
void write_typed(const Tensor& tensor, TensorProto& proto);
/// Whether the data lies in a typed field (float_data, ...).
bool is_typed(const TensorProto& proto);

}  // namespace modelflow::proto
