// Weights in a temporary file, and models beside it that refer to them.
#include "src/onnx/model_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "modelflow/error.h"
#include "src/onnx/write.h"

namespace modelflow {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kAlignment = 4096;  // ONNX Runtime then maps weights in place
constexpr std::size_t kSmall = 1024;      // bytes; below it a tensor stays in the model
constexpr std::size_t kNewest = 8;        // models
constexpr const char* kWeights = "weights";

void refer(proto::TensorProto& proto, std::size_t offset, std::size_t bytes) {
  proto.set_data_location(proto::TensorProto::EXTERNAL);
  const std::pair<const char*, std::string> entries[] = {
      {"location", kWeights}, {"offset", std::to_string(offset)}, {"length", std::to_string(bytes)}};
  for (const auto& [key, value] : entries) {
    auto* entry = proto.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
}

}  // namespace

ModelFolder::~ModelFolder() {
  if (weights_ >= 0) ::close(weights_);
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

fs::path ModelFolder::save(const Model& model) {
  const std::lock_guard alone(saving_);
  if (path_.empty()) make();
  const proto::ModelProto written = proto::write_model(model, [&](const Tensor& weight, proto::TensorProto& proto) {
    if (weight.dtype() == DType::string || weight.bytes() < kSmall) return false;
    refer(proto, place_of(weight), weight.bytes());
    return true;
  });
  fs::path path = path_ / ("model-" + std::to_string(models_++) + ".onnx");
  std::ofstream file(path, std::ios::binary);
  if (!written.SerializePartialToOstream(&file) || !file.flush()) fail("no room for a model");
  forget_old();
  return path;
}

void ModelFolder::make() {
  static std::atomic<unsigned> count{0};  // only so that two never share a folder
  std::error_code error;
  path_ =
      fs::temp_directory_path(error) / ("modelflow-model-" + std::to_string(getpid()) + "-" + std::to_string(count++));
  if (!error) fs::create_directories(path_, error);
  if (error)
    throw Error(ErrorKind::output,
                "cannot make a folder for temporary files '" + path_.string() + "': " + error.message());
  weights_ = ::open((path_ / kWeights).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (weights_ < 0) fail("no file can be made");
}

std::size_t ModelFolder::place_of(const Tensor& weight) {
  const std::pair key{weight.data(), weight.bytes()};
  if (const auto known = placed_.find(key); known != placed_.end()) {
    known->second.last = models_;
    return known->second.offset;
  }
  const std::size_t offset = end_;
  append(weight);
  placed_.emplace(key, Placed{weight, offset, models_});
  return offset;
}

void ModelFolder::forget_old() {
  std::erase_if(placed_, [&](const auto& each) { return each.second.last + kNewest < models_; });
}

void ModelFolder::append(const Tensor& weight) {
  const std::size_t bytes = weight.bytes();
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::pwrite(weights_, weight.data() + done, bytes - done, static_cast<off_t>(end_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("no room for weights");
    done += static_cast<std::size_t>(n);
  }
  end_ = (end_ + bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void ModelFolder::fail(const std::string& what) const {
  throw Error(ErrorKind::output,
              what + " in the folder for temporary files '" + path_.string() + "': " + std::strerror(errno));
}

}  // namespace modelflow
