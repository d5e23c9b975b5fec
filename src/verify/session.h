// Sessions of ONNX Runtime on models in memory.
#pragma once

#include <memory>
#include <string>

#include "modelflow/model.h"
#include "modelflow/runtime.h"

namespace modelflow {

class ModelFolder;

/// What sessions are opened with: a runtime and, where several models share weights, the folder that these lie in once.
struct Sessions {
  Sessions(Runtime& runtime, ModelFolder* folder = nullptr) : runtime(runtime), folder(folder) {}
  Runtime& runtime;
  ModelFolder* folder;
};

/// A session on a model in memory; models too large for one buffer go through a temporary file. Without optimizations
/// products of 8-bit numbers are exact (src/verify/exact_products.h).
std::unique_ptr<Session> open_session(const Sessions& sessions, const Model& model, const SessionOptions& options);
/// One that maps its weights from a file, as users open it.
std::unique_ptr<Session> open_from_file(const Sessions& sessions, const Model& model, const SessionOptions& options);
/// Whether the plugin has anything to run in it.
bool uses_our_domain(const Model& model);
/// Whether ONNX Runtime, its own optimizations on, loads the model; `why` not.
bool loads(const Sessions& sessions, const Model& model, std::string& why);

}  // namespace modelflow
