// Types from and to protobuf, and how many axes there may be.
#pragma once

#include "src/onnx/proto.h"

namespace modelflow::proto {

/// Everything that Type cannot say (denotations, spellings of dims, non-tensors) is kept in Type::proto.
Type read_type(const TypeProto& proto);
/// False (and nothing written) when nothing is known.
bool write_type(const Type& type, TypeProto& proto);

/// Most axes of a tensor: numpy knows 64. Everything that is said of a tensor is as long as it has axes.
inline constexpr int kMaxRank = 1024;
/// Throws Error(limit) beyond kMaxRank.
void check_rank(int rank);

Shape read_shape(const TensorShapeProto& proto);
void write_shape(const Shape& shape, TensorShapeProto& proto);
Dim read_dim(const TensorShapeProto::Dimension& proto);
void write_dim(const Dim& dim, TensorShapeProto::Dimension& proto);

}  // namespace modelflow::proto
