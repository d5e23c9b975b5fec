// Where models name their data files, found without reading weights.
#include "src/core/data_files.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <map>
#include <set>

#include "modelflow/error.h"
#include "src/onnx/external.h"
#include "src/onnx/file.h"
#include "src/onnx/proto.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

using google::protobuf::internal::WireFormatLite;

enum class Message { model, training, graph, function, node, attribute, sparse, tensor, place };

/// The fields on the way from a model to the places of its tensors.
const std::map<std::pair<Message, int>, Message>& ways() {
  using enum Message;
  static const std::map<std::pair<Message, int>, Message> all = {
      {{model, proto::ModelProto::kGraphFieldNumber}, graph},
      {{model, proto::ModelProto::kTrainingInfoFieldNumber}, training},
      {{model, proto::ModelProto::kFunctionsFieldNumber}, function},
      {{training, proto::TrainingInfoProto::kInitializationFieldNumber}, graph},
      {{training, proto::TrainingInfoProto::kAlgorithmFieldNumber}, graph},
      {{function, proto::FunctionProto::kNodeFieldNumber}, node},
      {{function, proto::FunctionProto::kAttributeProtoFieldNumber}, attribute},
      {{graph, proto::GraphProto::kNodeFieldNumber}, node},
      {{graph, proto::GraphProto::kInitializerFieldNumber}, tensor},
      {{graph, proto::GraphProto::kSparseInitializerFieldNumber}, sparse},
      {{node, proto::NodeProto::kAttributeFieldNumber}, attribute},
      {{attribute, proto::AttributeProto::kTFieldNumber}, tensor},
      {{attribute, proto::AttributeProto::kTensorsFieldNumber}, tensor},
      {{attribute, proto::AttributeProto::kGFieldNumber}, graph},
      {{attribute, proto::AttributeProto::kGraphsFieldNumber}, graph},
      {{attribute, proto::AttributeProto::kSparseTensorFieldNumber}, sparse},
      {{attribute, proto::AttributeProto::kSparseTensorsFieldNumber}, sparse},
      {{sparse, proto::SparseTensorProto::kValuesFieldNumber}, tensor},
      {{sparse, proto::SparseTensorProto::kIndicesFieldNumber}, tensor},
      {{tensor, proto::TensorProto::kExternalDataFieldNumber}, place},
  };
  return all;
}

/// False at the first thing that is no protobuf; what was found until then stays.
bool collect(google::protobuf::io::CodedInputStream& in, Message at, std::set<std::string>& names) {
  if (at == Message::place) {
    proto::StringStringEntryProto entry;
    if (!entry.MergeFromCodedStream(&in)) return false;
    if (entry.key() == "location") names.insert(entry.value());
    return true;
  }
  while (const std::uint32_t tag = in.ReadTag()) {
    const auto way = ways().find({at, WireFormatLite::GetTagFieldNumber(tag)});
    if (way == ways().end() || WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    int length = 0;
    if (!in.ReadVarintSizeAsInt(&length)) return false;
    const auto [outer, depth] = in.IncrementRecursionDepthAndPushLimit(length);
    if (depth < 0 || !collect(in, way->second, names) || !in.DecrementRecursionDepthAndPopLimit(outer)) return false;
  }
  return true;
}

std::set<std::string> locations_in(const fs::path& file) {
  std::set<std::string> names;
  std::error_code error;
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > proto::kMaxBytes) return names;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return names;
  const auto mapped = MappedFile::map(fd, file.string());
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(mapped->data()),
                                            static_cast<int>(mapped->size()));
  (void)collect(in, Message::model, names);
  return names;
}

/// Calls `take` with each location in a model that may be read; what may not is passed over.
template <class Take>
void each_location(const fs::path& file, const Take& take) {
  try {
    ExternalFiles files(directory_of(file), file);
    for (const std::string& location : locations_in(file)) {
      try {
        take(files, location);
      } catch (const Error&) {  // nothing that may be read
      }
    }
  } catch (const Error&) {  // it became something else meanwhile
  }
}

}  // namespace

std::vector<fs::path> data_files_of(const fs::path& file) {
  std::vector<fs::path> found;
  each_location(
      file, [&](const ExternalFiles& files, const std::string& location) { found.push_back(files.find(location)); });
  return found;
}

std::vector<std::shared_ptr<const void>> held_data_files(const std::vector<fs::path>& models) {
  std::vector<std::shared_ptr<const void>> held;
  for (const fs::path& model : models)
    each_location(model,
                  [&](ExternalFiles& files, const std::string& location) { held.push_back(files.open(location)); });
  return held;
}

void refuse_data_files(const fs::path& output, std::string_view what, const std::vector<fs::path>& models) {
  std::error_code error;
  for (const fs::path& model : models)
    for (const fs::path& data : data_files_of(model))
      if (fs::equivalent(output, data, error))
        throw Error(ErrorKind::usage,
                    std::string(what) + " '" + output.string() + "' is where weights of '" + model.string() + "' lie");
}

}  // namespace modelflow
