// How a model is saved, so that at every moment the name FILE (the end of symbolic links) is a complete model with
// data: weights go to FILE.data, or FILE.data.1, ... if that name is taken by other content; then the model itself is
// renamed over FILE. Only after that a data file that the replaced FILE used and that has such a name is removed
// (stale_data.cpp). From the choice of the data file on, no other run saves in the folder: it might take what is about
// to go.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "modelflow/error.h"
#include "src/core/new_file.h"
#include "src/onnx/file.h"
#include "src/onnx/stale_data.h"
#include "src/onnx/write.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kAlignment = 4096;           // ORT then maps weights in place
constexpr std::size_t kSmall = 1024;               // bytes; below it a tensor stays in the model
constexpr std::size_t kFusedWeights = 1 << 20;     // with fused ops, more than this goes outside
constexpr std::size_t kInlineLimit = 1536u << 20;  // 1.5 GiB

bool has_fused_ops(const Graph& graph) {
  const auto holds = [](const Graph* inner) { return has_fused_ops(*inner); };
  return std::ranges::any_of(graph.nodes(), [&](const auto& node) {
    return node->domain() == kDomain || std::ranges::any_of(node->subgraphs(), holds);
  });
}

}  // namespace

std::size_t weight_bytes(const Graph& graph) {
  std::size_t sum = 0;
  for (const Value* value : graph.initializers())
    if (value->dtype() != DType::string) sum += value->initializer()->bytes();
  for (const auto& node : graph.nodes())
    for (const Graph* inner : node->subgraphs()) sum += weight_bytes(*inner);
  return sum;
}

bool keeps_weights_outside(const Model& model) {
  const std::size_t bytes = weight_bytes(model.graph());
  return model.had_external_data || bytes > kInlineLimit || (bytes > kFusedWeights && has_fused_ops(model.graph()));
}

namespace {

bool wants_external(const Model& model, WriteOptions::ExternalData choice) {
  if (choice != WriteOptions::ExternalData::automatic) return choice == WriteOptions::ExternalData::always;
  return keeps_weights_outside(model);
}

// Where each tensor goes in the data file. Tensors that share their bytes share their place.
class DataLayout {
 public:
  bool place(const Tensor& tensor, proto::TensorProto& proto) {
    if (tensor.dtype() == DType::string || tensor.bytes() < kSmall) return false;
    auto [entry, fresh] = offsets_.try_emplace({tensor.data(), tensor.bytes()}, end_);
    if (fresh) {
      tensors_.emplace_back(tensor, end_);
      size_ = end_ + tensor.bytes();
      end_ = (size_ + kAlignment - 1) / kAlignment * kAlignment;
    }
    proto.set_data_location(proto::TensorProto::EXTERNAL);
    locations_.push_back(add(proto, "location", ""));
    add(proto, "offset", std::to_string(entry->second));
    add(proto, "length", std::to_string(tensor.bytes()));
    return true;
  }
  bool empty() const { return tensors_.empty(); }
  std::size_t size() const { return size_; }
  void write(NewFile& file) const {
    for (const auto& [tensor, offset] : tensors_) file.write(tensor.data(), tensor.bytes(), offset);
  }
  void set_location(const std::string& name) {
    for (auto* entry : locations_) entry->set_value(name);
  }

 private:
  static proto::StringStringEntryProto* add(proto::TensorProto& proto, const char* key, const std::string& value) {
    auto* entry = proto.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
    return entry;
  }
  std::map<std::pair<const std::byte*, std::size_t>, std::size_t> offsets_;
  std::vector<std::pair<Tensor, std::size_t>> tensors_;
  std::vector<proto::StringStringEntryProto*> locations_;
  std::size_t size_ = 0, end_ = 0;
};

void write_proto(const proto::ModelProto& model, NewFile& file) {
  google::protobuf::io::FileOutputStream stream(file.descriptor(), 1 << 20);
  bool ok;
  {
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    ok = model.SerializePartialToCodedStream(&out);
  }
  ok = stream.Flush() && ok;
  if (!ok) {
    throw Error(ErrorKind::output, std::string("the model cannot be written: ") + std::strerror(stream.GetErrno()));
  }
}

/// Readers look for data beside the name that they are given: where that is a link from another folder, the data has a
/// link there too. Gives what was made.
fs::path link_to_data(const fs::path& name, const fs::path& data) {
  fs::path link = directory_of(name) / data.filename();
  std::error_code error;
  if (fs::equivalent(link, data, error)) return {};
  fs::create_symlink(fs::canonical(data).lexically_relative(fs::canonical(directory_of(name))), link, error);
  if (error)
    throw Error(ErrorKind::output, "'" + name.string() + "' is a link from another folder, and '" + link.string() +
                                       "' cannot be one to its weights: " + error.message());
  return link;
}

}  // namespace

void Model::save(const fs::path& name, const WriteOptions& options) const {
  const fs::path file = end_of_links(name);
  DataLayout layout;
  proto::Placement place;
  if (wants_external(*this, options.external_data)) {
    place = [&](const Tensor& tensor, proto::TensorProto& proto) { return layout.place(tensor, proto); };
  }
  const Error too_large(ErrorKind::limit, "more than 2 GiB in one file is not possible; use external data");
  if (!place && weight_bytes(graph()) > proto::kMaxBytes) throw too_large;
  if (file.filename().empty()) throw Error(ErrorKind::output, "'" + file.string() + "' is not a file name");
  proto::ModelProto model = proto::write_model(*this, place);
  fs::path data_file = file.string() + ".data";
  layout.set_location(data_file.filename().string() + ".00");  // room for the final name
  std::size_t size = model.ByteSizeLong();
  if (size > proto::kMaxBytes) throw too_large;
  check_room(file, std::max(size, layout.size()), size + layout.size());
  NewFile out(file);
  std::optional<NewFile> data;
  if (layout.empty()) {
    write_proto(model, out);
    out.sync();
  } else {
    layout.write(data.emplace(data_file));
    data->sync();
  }
  const FolderLock lock(directory_of(file));
  StaleData stale(file);
  NewFile::Settled settled{{}, false};
  if (data) {
    settled = data->settle();
    layout.set_location(settled.path.filename().string());
  }
  fs::path link;
  try {
    if (data) link = link_to_data(name, settled.path);
    if (data) write_proto(model, out);
    out.replace();
  } catch (...) {
    std::error_code ignored;
    if (!link.empty()) fs::remove(link, ignored);
    if (settled.fresh) fs::remove(settled.path, ignored);
    throw;
  }
  stale.remove(settled.path, directory_of(name));
}

}  // namespace modelflow
