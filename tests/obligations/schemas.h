// What the ONNX schemas say of an op: the attributes it may have and the inputs it may lack.
#pragma once

#include <string>
#include <vector>

#include "modelflow/model.h"

namespace modelflow::obligations {

struct AttributeKind {
  enum class Type { integer, number, text, integers, numbers, other };
  std::string name;
  Type type = Type::other;
  bool required = false;
};

/// Empty for ops without a schema.
std::vector<AttributeKind> attributes_of(const Node& node, const Model& model);
/// Which inputs may be absent.
std::vector<std::size_t> optional_inputs(const Node& node, const Model& model);

}  // namespace modelflow::obligations
