// The attributes of a node as ONNX Runtime tells them, in the types that its op declares.
#pragma once

#include <string>

#include "backends/ort/api.h"
#include "modelflow/attr.h"

namespace modelflow::ort {

/// Both name functions want a buffer of the size that a first call returns, the final 0 counted.
template <class Get>
std::string text(const OrtApi& api, Get get) {
  std::size_t size = 0;
  if (!succeeded(api, get(nullptr, &size)) || size == 0) return {};
  std::string out(size, '\0');
  check(api, get(out.data(), &size));
  out.resize(size - 1);
  return out;
}

/// The value of an attribute, `usual` where the node has none. Whole numbers are taken for floats; throws
/// Error(invalid_input) where it is of another type than `usual`, which the runtime does not check.
Attr attribute(const OrtApi& api, const OrtKernelInfo* info, const std::string& name, const Attr& usual);

}  // namespace modelflow::ort
