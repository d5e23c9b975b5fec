// ONNX Runtime's C API for the plugin, which links no ONNX Runtime but uses the functions of the one that loads it.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>

#include "backends/vector_registers.h"
#include "modelflow/error.h"

namespace modelflow::ort {

/// Turns a status into Error(unsupported) and releases it.
inline void check(const OrtApi& api, OrtStatus* status) {
  if (!status) return;
  const std::string message = api.GetErrorMessage(status);
  api.ReleaseStatus(status);
  throw Error(ErrorKind::unsupported, "ONNX Runtime: " + message);
}

/// True when the call worked; the status is dropped.
inline bool succeeded(const OrtApi& api, OrtStatus* status) {
  if (!status) return true;
  api.ReleaseStatus(status);
  return false;
}

inline OrtStatus* status_of(const OrtApi& api, const std::exception& error) {
  OrtErrorCode code = ORT_FAIL;
  if (const auto* ours = dynamic_cast<const Error*>(&error)) {
    if (ours->kind() == ErrorKind::invalid_input) code = ORT_INVALID_ARGUMENT;
    if (ours->kind() == ErrorKind::unsupported) code = ORT_NOT_IMPLEMENTED;
  }
  return api.CreateStatus(code, error.what());
}

/// Runs `body`; nothing may be thrown into the runtime, so every exception becomes a status.
template <class Body>
OrtStatus* guarded(const OrtApi& api, Body body) noexcept {
  try {
    const VectorRegisters registers;
    body();
    return nullptr;
  } catch (const std::exception& error) {
    return status_of(api, error);
  } catch (...) {
    return api.CreateStatus(ORT_FAIL, "unknown exception in modelflow");
  }
}

}  // namespace modelflow::ort
