// The C API of a loaded ONNX Runtime.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>

#include "modelflow/tensor.h"

namespace modelflow {

/// The C API of one loaded ONNX Runtime. Statuses become Error(unsupported) with ORT's message as one line.
class OrtCalls {
 public:
  OrtCalls(const OrtApi* api, std::string version) : api_(api), version_(std::move(version)) {}
  const OrtApi* operator->() const { return api_; }
  const std::string& version() const { return version_; }
  void check(OrtStatus* status) const;

  /// Owns an object of the C API: `hold(value, (*api)->ReleaseValue)`.
  template <class T>
  using Held = std::unique_ptr<T, void (*)(T*)>;
  template <class T>
  static Held<T> hold(T* object, void (*release)(T*)) {
    return Held<T>(object, release);
  }

 private:
  const OrtApi* api_;
  std::string version_;
};

using OrtValueHeld = OrtCalls::Held<OrtValue>;

/// An OrtValue over the tensor's own bytes (strings are copied): `tensor` must outlive it.
OrtValueHeld to_ort(const OrtCalls& ort, const Tensor& tensor);
/// A copy. Of a sequence or a map all numbers of its tensors or values, one after the other, in one axis; of an empty
/// one no float. Undefined for absent optionals and other kinds.
Tensor from_ort(const OrtCalls& ort, const OrtValue* value);

}  // namespace modelflow
