// Types from and to protobuf.
#include "src/onnx/types.h"

#include "modelflow/error.h"
#include "src/onnx/extent_text.h"

namespace modelflow::proto {
namespace {

// Whether write_type(read_type(proto)) gives the same text back without help.
bool plain(const TensorShapeProto::Dimension& proto) {
  if (proto.has_denotation()) return false;
  if (proto.has_dim_value()) return proto.dim_value() >= 0;
  if (proto.has_dim_param()) {
    const Dim dim = read_dim(proto);
    return !dim.unknown() && dim.str() == proto.dim_param();
  }
  return true;
}

bool plain(const TypeProto& proto) {
  if (proto.has_denotation() || !proto.tensor_type().has_elem_type()) return false;
  for (const auto& dim : proto.tensor_type().shape().dim()) {
    if (!plain(dim)) return false;
  }
  return true;
}

// Equal as far as the file can say: two unknowns are the same spelling.
bool same(const Dim& a, const Dim& b) { return a == b || (a.unknown() && b.unknown()); }

}  // namespace

// Negative numbers are how several exporters (paddle2onnx) write "dynamic".
Dim read_dim(const TensorShapeProto::Dimension& proto) {
  if (proto.has_dim_value()) return proto.dim_value() < 0 ? Dim() : Dim(proto.dim_value());
  if (!proto.has_dim_param() || proto.dim_param().empty()) return {};
  Dim dim = read_extent(proto.dim_param());
  return dim.known() ? Dim() : dim;  // a parameter that is called "4" is still a parameter
}

void write_dim(const Dim& dim, TensorShapeProto::Dimension& proto) {
  if (dim.unknown()) return;
  if (auto number = dim.number()) {
    if (*number >= 0) proto.set_dim_value(*number);
  } else {
    proto.set_dim_param(dim.str());
  }
}

void check_rank(int rank) {
  if (rank > kMaxRank)
    throw Error(ErrorKind::limit,
                "a tensor of " + std::to_string(rank) + " axes; " + std::to_string(kMaxRank) + " are the most");
}

Shape read_shape(const TensorShapeProto& proto) {
  check_rank(proto.dim_size());
  std::vector<Dim> dims;
  for (const auto& dim : proto.dim()) dims.push_back(read_dim(dim));
  return Shape(std::move(dims));
}

void write_shape(const Shape& shape, TensorShapeProto& proto) {
  for (const Dim& dim : shape.dims()) write_dim(dim, *proto.add_dim());
}

Type read_type(const TypeProto& proto) {
  if (proto.value_case() == TypeProto::VALUE_NOT_SET) {
    return proto.has_denotation() ? Type{Type::Kind::other, DType::undefined, {}, bytes_of(proto)} : Type{};
  }
  if (!proto.has_tensor_type()) return {Type::Kind::other, DType::undefined, {}, bytes_of(proto)};
  Type type = Type::tensor(static_cast<DType>(proto.tensor_type().elem_type()));
  if (proto.tensor_type().has_shape()) type.shape = read_shape(proto.tensor_type().shape());
  if (!plain(proto)) type.proto = bytes_of(proto);
  return type;
}

bool write_type(const Type& type, TypeProto& proto) {
  if (type.kind == Type::Kind::unknown) return false;
  if (!type.proto.empty()) proto.ParsePartialFromString(type.proto);
  if (type.kind == Type::Kind::other) return true;
  auto& tensor = *proto.mutable_tensor_type();
  if (type.proto.empty() || tensor.elem_type() != static_cast<int>(type.dtype)) {
    tensor.set_elem_type(static_cast<int>(type.dtype));
  }
  if (!type.shape.has_rank()) {
    tensor.clear_shape();
    return true;
  }
  auto& shape = *tensor.mutable_shape();
  if (shape.dim_size() != static_cast<int>(type.shape.rank())) {
    shape.clear_dim();
    write_shape(type.shape, shape);
    return true;
  }
  for (int i = 0; i < shape.dim_size(); ++i) {
    if (same(read_dim(shape.dim(i)), type.shape[i])) continue;
    shape.mutable_dim(i)->clear_dim_value();
    shape.mutable_dim(i)->clear_dim_param();
    write_dim(type.shape[i], *shape.mutable_dim(i));
  }
  return true;
}

}  // namespace modelflow::proto
