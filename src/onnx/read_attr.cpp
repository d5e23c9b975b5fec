// Attributes read.
#include <algorithm>

#include "modelflow/error.h"
#include "src/onnx/keep.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {
namespace {

// Files of 2017 leave the type out; the field that is set tells it.
AttributeProto::AttributeType type_of(const AttributeProto& proto) {
  if (proto.type() != AttributeProto::UNDEFINED) return proto.type();
  if (proto.has_f()) return AttributeProto::FLOAT;
  if (proto.has_i()) return AttributeProto::INT;
  if (proto.has_s()) return AttributeProto::STRING;
  if (proto.has_t()) return AttributeProto::TENSOR;
  if (proto.has_g()) return AttributeProto::GRAPH;
  if (proto.floats_size()) return AttributeProto::FLOATS;
  if (proto.ints_size()) return AttributeProto::INTS;
  if (proto.strings_size()) return AttributeProto::STRINGS;
  if (proto.tensors_size()) return AttributeProto::TENSORS;
  if (proto.graphs_size()) return AttributeProto::GRAPHS;
  return AttributeProto::UNDEFINED;
}

void load_sparse(SparseTensorProto& proto, ExternalFiles& files) {
  load_external(*proto.mutable_values(), files);
  load_external(*proto.mutable_indices(), files);
}

Subgraph read_subgraph(GraphProto& proto, Node* owner, GraphReader& reader) {
  auto graph = std::make_shared<Graph>(owner);
  reader.read(proto, *graph);
  return graph;
}

bool all_readable(const google::protobuf::RepeatedPtrField<TensorProto>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const TensorProto& tensor) { return readable(tensor); });
}

Attr read_value(AttributeProto& proto, Node* owner, GraphReader& reader, ExternalFiles& files) {
  switch (type_of(proto)) {
    case AttributeProto::FLOAT:
      return proto.f();
    case AttributeProto::INT:
      return std::int64_t{proto.i()};
    case AttributeProto::STRING:
      return std::move(*proto.mutable_s());
    case AttributeProto::FLOATS:
      return Floats(proto.floats().begin(), proto.floats().end());
    case AttributeProto::INTS:
      return Ints(proto.ints().begin(), proto.ints().end());
    case AttributeProto::STRINGS:
      return Strings(proto.strings().begin(), proto.strings().end());
    case AttributeProto::GRAPH:
      return read_subgraph(*proto.mutable_g(), owner, reader);
    case AttributeProto::TENSOR:
      if (readable(proto.t())) return read_tensor(*proto.mutable_t(), files);
      break;
    case AttributeProto::TENSORS: {
      if (!all_readable(proto.tensors())) break;
      std::vector<Tensor> tensors;
      for (TensorProto& tensor : *proto.mutable_tensors()) tensors.push_back(read_tensor(tensor, files));
      return tensors;
    }
    case AttributeProto::GRAPHS: {
      std::vector<Subgraph> graphs;
      for (GraphProto& graph : *proto.mutable_graphs()) graphs.push_back(read_subgraph(graph, owner, reader));
      return graphs;
    }
    default:
      break;
  }
  reader.load_external(proto);
  if (owner) drop_fields(*proto.mutable_unknown_fields());  // the node keeps them for all its attributes
  return AttrBytes{bytes_of(proto)};
}

}  // namespace

Attr GraphReader::read(AttributeProto& proto, Node* owner) {
  if (proto.has_ref_attr_name() && !proto.ref_attr_name().empty()) {
    return AttrRef{proto.ref_attr_name(), proto.type()};
  }
  try {
    return read_value(proto, owner, *this, files_);
  } catch (const Error& error) {
    throw error.within("attribute '" + proto.name() + "'");
  }
}

void GraphReader::load_external(GraphProto& proto) {
  for (TensorProto& tensor : *proto.mutable_initializer()) proto::load_external(tensor, files_);
  for (SparseTensorProto& sparse : *proto.mutable_sparse_initializer()) load_sparse(sparse, files_);
  for (NodeProto& node : *proto.mutable_node()) {
    for (AttributeProto& attribute : *node.mutable_attribute()) load_external(attribute);
  }
}

void GraphReader::load_external(AttributeProto& proto) {
  if (proto.has_t()) proto::load_external(*proto.mutable_t(), files_);
  for (TensorProto& tensor : *proto.mutable_tensors()) proto::load_external(tensor, files_);
  if (proto.has_sparse_tensor()) load_sparse(*proto.mutable_sparse_tensor(), files_);
  for (SparseTensorProto& sparse : *proto.mutable_sparse_tensors()) load_sparse(sparse, files_);
  if (proto.has_g()) load_external(*proto.mutable_g());
  for (GraphProto& graph : *proto.mutable_graphs()) load_external(graph);
}

}  // namespace modelflow::proto
