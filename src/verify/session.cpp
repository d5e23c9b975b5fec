// Sessions of models, from memory or from files that vanish.
#include <unistd.h>

#include <atomic>

#include "modelflow/error.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

/// The copy in one buffer is quicker to make than a file, but it stays in memory twice.
constexpr double kLargestBuffer = 512 << 20;

double weight_bytes(const Graph& graph) {
  double sum = 0;
  for (const Value* value : graph.initializers())
    if (value->initializer()->dtype() != DType::string) sum += static_cast<double>(value->initializer()->bytes());
  return sum;
}

/// A folder that vanishes with its contents. ORT maps external data, so on Linux it may go once the session is open.
struct TemporaryFolder {
  std::filesystem::path path;
  TemporaryFolder() {
    static std::atomic<unsigned> count{0};  // only so that two sessions never share a folder
    std::error_code error;
    path = std::filesystem::temp_directory_path(error) /
           ("modelflow-model-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    if (!error) std::filesystem::create_directories(path, error);
    if (error)
      throw Error(ErrorKind::output,
                  "cannot make a folder for temporary files '" + path.string() + "': " + error.message());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::unique_ptr<Session> open_from_file(Runtime& runtime, const Model& model, const SessionOptions& options) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path / "model.onnx";
  model.save(file, {.external_data = WriteOptions::ExternalData::always});
  return runtime.load(file, options);
}

std::unique_ptr<Session> open_session(Runtime& runtime, const Model& model, const SessionOptions& options) {
  if (weight_bytes(model.graph()) > kLargestBuffer) return open_from_file(runtime, model, options);
  const std::string bytes = model.to_bytes();
  return runtime.load_bytes(std::as_bytes(std::span(bytes)), options);
}

bool loads(Runtime& runtime, const Model& model, std::string& why) {
  try {
    open_session(runtime, model, {});
    return true;
  } catch (const Error& error) {
    why = error.what();
    return false;
  }
}

}  // namespace modelflow
