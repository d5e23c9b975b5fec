// Sessions of models, from memory or from files that vanish.
#include "src/verify/session.h"

#include <optional>

#include "modelflow/error.h"
#include "src/onnx/file.h"
#include "src/onnx/model_folder.h"
#include "src/verify/exact_products.h"

namespace modelflow {
namespace {

/// The copy in one buffer is quicker to make than a file, but it stays in memory twice.
constexpr std::size_t kLargestBuffer = 512 << 20;
/// From here on several sessions are opened sooner with the weights in a file.
constexpr std::size_t kWorthAFile = 16 << 20;

std::unique_ptr<Session> open_from_bytes(Runtime& runtime, const Model& model, const SessionOptions& options) {
  const std::string bytes = model.to_bytes();
  return runtime.load_bytes(std::as_bytes(std::span(bytes)), options);
}

/// ONNX Runtime's own optimizations see the weights where users will have them, as far as there is room.
bool goes_through_a_file(const Sessions& sessions, const Model& model, std::size_t bytes,
                         const SessionOptions& options) {
  if (bytes > kLargestBuffer) return true;
  return sessions.folder && bytes >= kWorthAFile && (!options.optimize || keeps_weights_outside(model));
}

std::unique_ptr<Session> open_model(const Sessions& sessions, const Model& model, const SessionOptions& options) {
  const std::size_t bytes = weight_bytes(model.graph());
  if (!goes_through_a_file(sessions, model, bytes, options)) return open_from_bytes(sessions.runtime, model, options);
  try {
    return open_from_file(sessions, model, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::output || bytes > kLargestBuffer) throw;
    return open_from_bytes(sessions.runtime, model, options);  // no room for temporary files
  }
}

/// What a session without optimizations has to run so that its results are what the model means.
std::optional<Model> exact_form(const Model& model, const SessionOptions& options) {
  return options.optimize ? std::nullopt : with_exact_products(model, options.plugin.empty());
}

}  // namespace

std::unique_ptr<Session> open_from_file(const Sessions& sessions, const Model& model, const SessionOptions& options) {
  ModelFolder own;
  return sessions.runtime.load((sessions.folder ? *sessions.folder : own).save(model), options);
}

std::unique_ptr<Session> open_session(const Sessions& sessions, const Model& model, const SessionOptions& options) {
  const std::optional<Model> exact = exact_form(model, options);
  return open_model(sessions, exact ? *exact : model, options);
}

bool uses_our_domain(const Model& model) { return model.opsets.contains(std::string(kDomain)); }

bool loads(const Sessions& sessions, const Model& model, std::string& why) {
  try {
    open_session(sessions, model, {});
    return true;
  } catch (const Error& error) {
    why = error.what();
    return false;
  }
}

}  // namespace modelflow
