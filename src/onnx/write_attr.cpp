// Attributes written.
#include "src/onnx/tensors.h"
#include "src/onnx/write.h"

namespace modelflow::proto {
namespace {

// One call per alternative of Attr.
struct AttrWriter {
  AttributeProto& proto;
  GraphWriter& graphs;

  void operator()(std::int64_t value) {
    proto.set_type(AttributeProto::INT);
    proto.set_i(value);
  }
  void operator()(float value) {
    proto.set_type(AttributeProto::FLOAT);
    proto.set_f(value);
  }
  void operator()(const std::string& value) {
    proto.set_type(AttributeProto::STRING);
    proto.set_s(value);
  }
  void operator()(const Tensor& value) {
    proto.set_type(AttributeProto::TENSOR);
    write_tensor(value, *proto.mutable_t());
  }
  void operator()(const Subgraph& value) {
    proto.set_type(AttributeProto::GRAPH);
    graphs.write(*value, *proto.mutable_g());
  }
  void operator()(const Ints& values) {
    proto.set_type(AttributeProto::INTS);
    proto.mutable_ints()->Add(values.begin(), values.end());
  }
  void operator()(const Floats& values) {
    proto.set_type(AttributeProto::FLOATS);
    proto.mutable_floats()->Add(values.begin(), values.end());
  }
  void operator()(const Strings& values) {
    proto.set_type(AttributeProto::STRINGS);
    for (const std::string& value : values) proto.add_strings(value);
  }
  void operator()(const std::vector<Tensor>& values) {
    proto.set_type(AttributeProto::TENSORS);
    for (const Tensor& value : values) write_tensor(value, *proto.add_tensors());
  }
  void operator()(const std::vector<Subgraph>& values) {
    proto.set_type(AttributeProto::GRAPHS);
    for (const Subgraph& value : values) graphs.write(*value, *proto.add_graphs());
  }
  void operator()(const AttrRef& value) {
    proto.set_ref_attr_name(value.name);
    proto.set_type(static_cast<AttributeProto::AttributeType>(value.type));
  }
  void operator()(const AttrBytes& value) { proto.ParsePartialFromString(value.proto); }
};

}  // namespace

void GraphWriter::write(const std::string& name, const Attr& attr, AttributeProto& proto) {
  std::visit(AttrWriter{proto, *this}, attr);
  proto.set_name(name);
}

}  // namespace modelflow::proto
