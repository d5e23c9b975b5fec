#pragma once

#include "src/onnx/proto.h"

namespace modelflow::proto {

/// Everything that Type cannot say (denotations, spellings of dims, non-tensors) is kept in Type::proto.
Type read_type(const TypeProto& proto);
/// False (and nothing written) when nothing is known.
bool write_type(const Type& type, TypeProto& proto);

Shape read_shape(const TensorShapeProto& proto);
void write_shape(const Shape& shape, TensorShapeProto& proto);
Dim read_dim(const TensorShapeProto::Dimension& proto);
void write_dim(const Dim& dim, TensorShapeProto::Dimension& proto);

}  // namespace modelflow::proto
