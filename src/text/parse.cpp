// Models from their text form.

#include <onnx/defs/parser.h>

#include "modelflow/error.h"
#include "modelflow/model.h"
#include "modelflow/pass.h"
#include "src/onnx/read.h"

namespace modelflow {
namespace {

constexpr std::string_view kHeader = "<ir_version: 8, opset_import: [\"\" : 17, \"modelflow\" : 1]>\n";

std::size_t first_token(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (std::isspace(static_cast<unsigned char>(text[at]))) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

// Tests write "(float[N] x) => (float[N] y) { ... }": header and graph name may be left out.
std::string completed(std::string_view text) {
  text.remove_prefix(first_token(text));
  std::string result;
  if (!text.starts_with('<')) result += kHeader;
  if (text.starts_with('(')) result += "main_graph ";
  return result.append(text);
}

template <class Message>
void parse(Message& message, std::string_view text) {
  try {
    proto::OnnxParser parser(text);
    auto status = parser.Parse(message);
    if (!status.IsOK()) throw Error(ErrorKind::invalid_input, proto::one_line(status.ErrorMessage()));
    if (!parser.EndOfInput()) throw Error(ErrorKind::invalid_input, "text goes on after its end");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // numbers out of range, or none
    throw Error(ErrorKind::invalid_input, "ONNX text: a number cannot be read: " + std::string(error.what()));
  }
}

/// What the text leaves out of fused ops.
void complete(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (Graph* inner : node->subgraphs()) complete(*inner);
    complete(*node);
  }
}

}  // namespace

Model Model::from_text(std::string_view text) {
  proto::ModelProto model;
  parse(model, completed(text));
  ExternalFiles none({});
  Model read = proto::read_model(model, none);
  complete(read.graph());
  return read;
}

}  // namespace modelflow
