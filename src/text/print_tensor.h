// Tensors and numbers as text.
#pragma once

#include <string>

#include "modelflow/tensor.h"

namespace modelflow {

/// "{1, 2.5}": the elements as the parser reads them. Of a large tensor only a comment with its hash: such text is for
/// reading, it does not parse.
std::string tensor_values(const Tensor& tensor);
/// The shortest decimal that reads back as the same number, always with a point or exponent.
std::string float_text(double value, bool single);
/// In double quotes, with quotes and backslashes escaped.
std::string quoted_text(const std::string& text);

}  // namespace modelflow
