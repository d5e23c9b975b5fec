// ONNX text of layer and RMS normalization.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace modelflow::ops {

/// ONNX text: `result` is the layer normalization, or with `rms` the RMS normalization, of `x` over its trailing `axes`
/// by values `scale` and, unless rms, `bias`. Refers to @epsilon and @axis where layer_norm_attributes() says so.
/// Throws Error(unsupported) before opset 11.
std::string layer_norm_text(bool rms, std::size_t axes, const std::string& x, float epsilon, int opset,
                            const std::string& result = "y");
std::vector<std::string> layer_norm_attributes(bool rms, int opset);

}  // namespace modelflow::ops
