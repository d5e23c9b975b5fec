// Where an ONNX Runtime may be.
#pragma once

#include <filesystem>
#include <vector>

namespace modelflow {

/// libonnxruntime.so* in the `onnxruntime` Python packages of $VIRTUAL_ENV, of the python3 on $PATH, of the user and of
/// the system, in this order. The wheels carry the whole C API in capi/libonnxruntime.so.VERSION (seen in 1.21.1 and
/// 1.31.1); their extension module has its own copy, so a Python process that imported onnxruntime is not disturbed.
std::vector<std::filesystem::path> python_libraries();

/// libonnxruntime.so* in this folder, newest name first.
std::vector<std::filesystem::path> libraries_in(const std::filesystem::path& folder);

}  // namespace modelflow
