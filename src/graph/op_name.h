// The name of an op and its domain.
#pragma once

#include <string>
#include <string_view>

namespace modelflow {

class Node;

struct OpName {
  std::string_view domain, op;
};

/// "Relu" -> {"", Relu}; "modelflow.Conv" -> {modelflow, Conv}; "com.example:Op" -> {com.example, Op}. A name that
/// itself holds a colon is written with its domain in front, if only as ":aten::cat".
OpName split_op(std::string_view op);
/// The inverse, for messages and reports.
std::string joined_op(const Node& node);

}  // namespace modelflow
