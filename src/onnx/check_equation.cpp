// Equations of Einsum.
#include <algorithm>
#include <string>

#include "modelflow/error.h"
#include "src/onnx/read_graph.h"

namespace modelflow::proto {
namespace {

bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Labels of one operand or of the result, with at most one ellipsis among them.
bool is_term(std::string term) {
  if (const std::size_t dots = term.find("..."); dots != term.npos) term.erase(dots, 3);
  return std::ranges::all_of(term, is_label);
}

bool is_equation(std::string text) {
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  if (arrow != text.npos && !is_term(text.substr(arrow + 2))) return false;
  const std::string operands = text.substr(0, arrow);
  for (std::size_t at = 0; at <= operands.size();) {
    const std::size_t end = std::min(operands.find(',', at), operands.size());
    if (!is_term(operands.substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

// The shape function of libonnx 1.23 does not end on other characters.
void check_equation(const NodeProto& node) {
  if (node.op_type() != "Einsum" || !read_domain(node.domain()).empty()) return;
  for (const auto& attribute : node.attribute())
    if (attribute.name() == "equation" && attribute.ref_attr_name().empty() && !is_equation(attribute.s()))
      throw Error(ErrorKind::invalid_input, "the equation '" + attribute.s() + "' is none of Einsum");
}

}  // namespace modelflow::proto
