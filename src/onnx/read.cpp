// Bytes to a ModelProto to a Model, and what people pass by mistake.
#include "src/onnx/read.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/stat.h>

#include <cstring>

#include "modelflow/error.h"
#include "modelflow/model.h"
#include "src/onnx/keep.h"
#include "src/onnx/read_graph.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace proto {
namespace {

[[noreturn]] void bad(const std::string& what) { throw Error(ErrorKind::invalid_input, what); }

bool parses(ModelProto& model, std::span<const std::byte> bytes, int depth) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(depth);
  return model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

bool starts_with(std::span<const std::byte> bytes, std::string_view text, std::size_t at = 0) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

// What people pass by mistake, said in words.
void sniff(std::span<const std::byte> bytes) {
  if (bytes.empty()) bad("the file is empty");
  if (bytes.size() > kMaxBytes) {
    bad("larger than the 2 GiB that an ONNX file may have; weights of such models belong into external data");
  }
  if (starts_with(bytes, "version https://git-lfs")) bad("a Git LFS pointer, not the model itself (run git lfs pull)");
  if (starts_with(bytes, "ORTM", 4)) bad("an ORT-format model; the ONNX file it was made from is needed");
  if (starts_with(bytes, "PK\x03\x04")) bad("a zip archive, not an ONNX model");
}

ModelProto parse(std::span<const std::byte> bytes) {
  sniff(bytes);
  constexpr int kDepth = 100;  // that of every protobuf reader of the format
  ModelProto model;
  if (parses(model, bytes, kDepth)) return model;
  model.Clear();
  if (parses(model, bytes, 10 * kDepth)) bad("graphs are nested deeper than ONNX readers allow (100 messages)");
  bad("not an ONNX model, or damaged: the protobuf does not parse");
}

void read_opsets(const ModelProto& proto, Model& model) {
  for (const auto& import : proto.opset_import()) {
    std::string domain = read_domain(import.domain());
    auto [entry, fresh] = model.opsets.emplace(domain, import.version());
    if (!fresh && entry->second != import.version())
      bad("two versions of opset '" + import.domain() + "' are imported");
  }
  if (model.opsets.empty()) bad("no opset is imported");
}

/// Values of the main graph that another graph reads, in branches too, or gives.
void pin_read(const GraphProto& other, Graph& graph) {
  const auto pin = [&](const std::string& name) {
    if (graph.find(name)) graph.pinned.insert(name);
  };
  for (const auto& output : other.output()) pin(output.name());
  for (const auto& node : other.node()) {
    for (const std::string& input : node.input()) pin(input);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) pin_read(attribute.g(), graph);
      for (const auto& inner : attribute.graphs()) pin_read(inner, graph);
    }
  }
}

// training_info names values of the main graph by these.
void pin_bindings(const TrainingInfoProto& training, Graph& graph) {
  for (const auto* bindings : {&training.initialization_binding(), &training.update_binding()}) {
    for (const auto& entry : *bindings) {
      graph.pinned.insert(entry.key());
      graph.pinned.insert(entry.value());
    }
  }
  pin_read(training.algorithm(), graph);
}

std::string keep_model(ModelProto& proto) {
  ModelProto extras;
  *extras.mutable_training_info() = std::move(*proto.mutable_training_info());
  *extras.mutable_configuration() = std::move(*proto.mutable_configuration());
  for (const auto& import : proto.opset_import()) {
    auto& entry = *extras.add_opset_import();  // order and spelling; the versions are in Model::opsets
    if (import.has_domain()) entry.set_domain(import.domain());
  }
  for (const FunctionProto& function : proto.functions())
    if (function.domain() != kDomain) *extras.add_functions() = kept(function);  // ours are written anew
  if (proto.has_producer_name() && proto.producer_name().empty()) extras.set_producer_name("");
  if (proto.has_producer_version() && proto.producer_version().empty()) extras.set_producer_version("");
  if (proto.has_domain() && proto.domain().empty()) extras.set_domain("");
  if (proto.has_doc_string() && proto.doc_string().empty()) extras.set_doc_string("");
  if (proto.has_model_version() && proto.model_version() == 0) extras.set_model_version(0);
  keep_unknown(proto, extras);
  return bytes_of(extras);
}

}  // namespace

Model read_model(ModelProto& proto, ExternalFiles& files, const Limits& limits) {
  if (!proto.has_ir_version() || !proto.has_graph()) bad("not an ONNX model: it has no IR version or no graph");
  if (proto.ir_version() < 3) {
    throw Error(ErrorKind::unsupported, "IR version " + std::to_string(proto.ir_version()) + "; 3 is the oldest");
  }
  check_size(proto, limits);
  Model model;
  model.ir_version = proto.ir_version();
  model.producer_name = proto.producer_name();
  model.producer_version = proto.producer_version();
  model.domain = proto.domain();
  model.doc = proto.doc_string();
  model.model_version = proto.model_version();
  model.metadata = read_metadata(proto.metadata_props());
  read_opsets(proto, model);
  GraphReader reader(files, model.opsets);
  reader.read(*proto.mutable_graph(), model.graph());
  for (FunctionProto& function : *proto.mutable_functions()) {
    try {
      model.functions.push_back(reader.read(function));
    } catch (const Error& error) {
      throw error.within("local function '" + function.name() + "'");
    }
  }
  check_functions(model, limits);
  check_calls(model);
  for (TrainingInfoProto& training : *proto.mutable_training_info()) {
    if (training.has_initialization()) reader.load_external(*training.mutable_initialization());
    if (training.has_algorithm()) reader.load_external(*training.mutable_algorithm());
    pin_bindings(training, model.graph());
  }
  model.had_external_data = files.used();
  model.extras = keep_model(proto);
  return model;
}

Function read_function(FunctionProto& proto) {
  ExternalFiles none({});
  GraphReader::Opsets opsets;
  return GraphReader(none, opsets).read(proto);
}

}  // namespace proto

Model Model::from_bytes(std::span<const std::byte> bytes, const fs::path& directory, const Limits& limits) {
  ExternalFiles files(directory);
  proto::ModelProto model = proto::parse(bytes);
  return proto::read_model(model, files, limits);
}

Model Model::load(const fs::path& file, const Limits& limits) {
  try {
    int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) proto::bad(std::strerror(errno));
    auto mapped = MappedFile::map(fd, file.filename().string());
    fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
    ExternalFiles files(directory, file);
    proto::ModelProto model = proto::parse({mapped->data(), mapped->size()});
    mapped.reset();
    return proto::read_model(model, files, limits);
  } catch (const Error& error) {
    throw error.within("'" + file.string() + "'");
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::limit, "'" + file.string() + "': not enough memory to read it");
  }
}

}  // namespace modelflow
