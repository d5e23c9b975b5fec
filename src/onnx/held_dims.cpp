// The dims of a type, changed; what is no tensor is kept as protobuf, and so are its dims.
#include "src/onnx/held_dims.h"

#include "src/onnx/types.h"

namespace modelflow {
namespace {

using Change = std::function<Dim(const Dim&)>;

void change(proto::TensorShapeProto& shape, const Change& change) {
  for (proto::TensorShapeProto::Dimension& dim : *shape.mutable_dim()) {
    const Dim before = proto::read_dim(dim), after = change(before);
    if (before == after || before.unknown()) continue;
    dim.clear_dim_value();
    dim.clear_dim_param();
    proto::write_dim(after, dim);
  }
}

void change_inside(proto::TypeProto& type, const Change& by) {
  if (type.has_tensor_type() && type.tensor_type().has_shape())
    change(*type.mutable_tensor_type()->mutable_shape(), by);
  if (type.has_sparse_tensor_type() && type.sparse_tensor_type().has_shape())
    change(*type.mutable_sparse_tensor_type()->mutable_shape(), by);
  if (type.has_sequence_type()) change_inside(*type.mutable_sequence_type()->mutable_elem_type(), by);
  if (type.has_optional_type()) change_inside(*type.mutable_optional_type()->mutable_elem_type(), by);
  if (type.has_map_type()) change_inside(*type.mutable_map_type()->mutable_value_type(), by);
}

}  // namespace

void change_dims(Type& type, const Change& by) {
  if (type.is_tensor() && type.shape.has_rank()) {
    std::vector<Dim> dims = type.shape.dims();
    for (Dim& dim : dims) dim = by(dim);
    type.shape = std::move(dims);
  } else if (type.kind == Type::Kind::other) {
    proto::TypeProto held;
    held.ParsePartialFromString(type.proto);
    change_inside(held, by);
    type.proto = proto::bytes_of(held);
  }
}

}  // namespace modelflow
