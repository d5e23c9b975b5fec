// Sessions of models, from memory or from files that vanish.
#include "modelflow/error.h"
#include "src/onnx/file.h"
#include "src/onnx/model_folder.h"
#include "src/verify/exact_products.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

/// The copy in one buffer is quicker to make than a file, but it stays in memory twice.
constexpr double kLargestBuffer = 512 << 20;
/// From here on several sessions are opened sooner with the weights in a file.
constexpr double kWorthAFile = 16 << 20;

double weight_bytes(const Graph& graph) {
  double sum = 0;
  for (const Value* value : graph.initializers())
    if (value->initializer()->dtype() != DType::string) sum += static_cast<double>(value->initializer()->bytes());
  return sum;
}

std::unique_ptr<Session> open_from_bytes(Runtime& runtime, const Model& model, const SessionOptions& options) {
  const std::string bytes = model.to_bytes();
  return runtime.load_bytes(std::as_bytes(std::span(bytes)), options);
}

std::unique_ptr<Session> open_model(Runtime& runtime, const Model& model, const SessionOptions& options) {
  if (weight_bytes(model.graph()) > kLargestBuffer) return open_from_file(runtime, model, options);
  return open_from_bytes(runtime, model, options);
}

std::unique_ptr<Session> open_model(Runtime& runtime, const Model& model, const SessionOptions& options,
                                    ModelFolder& folder) {
  const double bytes = weight_bytes(model.graph());
  // ONNX Runtime's own optimizations see the weights where users will have them.
  if (bytes < kWorthAFile || (options.optimize && !keeps_weights_outside(model)))
    return open_from_bytes(runtime, model, options);
  try {
    return runtime.load(folder.save(model), options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::output || bytes > kLargestBuffer) throw;
    return open_from_bytes(runtime, model, options);  // no room for temporary files
  }
}

/// What a session without optimizations has to run so that its results are what the model means.
std::optional<Model> exact_form(const Model& model, const SessionOptions& options) {
  return options.optimize ? std::nullopt : with_exact_products(model, options.plugin.empty());
}

}  // namespace

std::unique_ptr<Session> open_from_file(Runtime& runtime, const Model& model, const SessionOptions& options) {
  return runtime.load(ModelFolder().save(model), options);
}

std::unique_ptr<Session> open_session(Runtime& runtime, const Model& model, const SessionOptions& options) {
  const std::optional<Model> exact = exact_form(model, options);
  return open_model(runtime, exact ? *exact : model, options);
}

std::unique_ptr<Session> open_session(Runtime& runtime, const Model& model, const SessionOptions& options,
                                      ModelFolder& folder) {
  const std::optional<Model> exact = exact_form(model, options);
  return open_model(runtime, exact ? *exact : model, options, folder);
}

bool uses_our_domain(const Model& model) { return model.opsets.contains(std::string(kDomain)); }

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
