// Nodes against the schema of their operator.
#include <onnx/checker.h>
#include <onnx/defs/schema.h>

#include "modelflow/error.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {

std::string one_line(std::string_view text) {
  std::string result;
  for (char c : text) {
    bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!blank) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

void check_schema(const NodeProto& node, const GraphReader::Opsets& opsets) {
  auto import = opsets.find(read_domain(node.domain()));
  if (import == opsets.end()) return;
  const auto* schema = OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(import->second), import->first);
  if (!schema || schema->Deprecated()) return;
  try {
    schema->Verify(node);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::invalid_input, one_line(error.what()));
  }
}

}  // namespace modelflow::proto
