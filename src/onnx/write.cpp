// Models to protobuf and to bytes.
#include "src/onnx/write.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "modelflow/error.h"
#include "src/onnx/file.h"
#include "src/onnx/keep.h"

namespace modelflow {
namespace proto {
namespace {

std::string called(const std::string& domain, const std::string& name, const std::string& overload) {
  return std::string(read_domain(domain)) + ':' + name + ':' + overload;
}

void write_functions(const Model& model, const ModelProto& extras, GraphWriter& writer, ModelProto& proto) {
  std::map<std::string, const FunctionProto*> kept;
  for (const FunctionProto& one : extras.functions()) kept[called(one.domain(), one.name(), one.overload())] = &one;
  for (const Function& function : model.functions) {
    const auto found = kept.find(called(function.domain, function.name, function.overload));
    writer.write(function, found == kept.end() ? FunctionProto() : *found->second, *proto.add_functions());
  }
}

}  // namespace

ModelProto write_model(const Model& model, Placement place) {
  ModelProto proto;
  auto extras = parsed<ModelProto>(model.extras);
  proto.set_ir_version(model.ir_version);
  write_opsets(model.opsets, extras.opset_import(), *proto.mutable_opset_import());
  if (!model.producer_name.empty() || extras.has_producer_name()) proto.set_producer_name(model.producer_name);
  if (!model.producer_version.empty() || extras.has_producer_version()) {
    proto.set_producer_version(model.producer_version);
  }
  if (!model.domain.empty() || extras.has_domain()) proto.set_domain(model.domain);
  if (model.model_version != 0 || extras.has_model_version()) proto.set_model_version(model.model_version);
  if (!model.doc.empty() || extras.has_doc_string()) proto.set_doc_string(model.doc);
  write_metadata(model.metadata, *proto.mutable_metadata_props());
  GraphWriter writer(model.ir_version, std::move(place));
  writer.write(model.graph(), *proto.mutable_graph());
  write_functions(model, extras, writer, proto);
  *proto.mutable_training_info() = std::move(*extras.mutable_training_info());
  *proto.mutable_configuration() = std::move(*extras.mutable_configuration());
  keep_unknown(extras, proto);
  return proto;
}

}  // namespace proto

std::string Model::to_bytes() const {
  const Error too_large(ErrorKind::limit, "the model has more than 2 GiB; save it with external data");
  if (weight_bytes(graph()) > proto::kMaxBytes) throw too_large;
  proto::ModelProto model = proto::write_model(*this);
  const std::size_t size = model.ByteSizeLong();
  if (size > proto::kMaxBytes) throw too_large;
  std::string bytes(size, '\0');  // a stream that grows would copy it again and again
  google::protobuf::io::ArrayOutputStream stream(bytes.data(), static_cast<int>(size));
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  model.SerializePartialToCodedStream(&out);
  out.Trim();
  return bytes;
}

}  // namespace modelflow
