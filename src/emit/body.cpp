#include "src/emit/body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/defs/parser.h>

#include "modelflow/function.h"
#include "src/onnx/read.h"

namespace modelflow {

std::string body_text(const FusedOp& op, const Call& call, int opset) {
  const std::vector<std::string> attributes = op.attributes(call, opset);
  const std::string formals = attributes.empty() ? "" : fmt::format("<{}> ", fmt::join(attributes, ", "));
  std::vector<std::string> outputs = {"y"};  // then y1, y2
  for (std::size_t i = 1; i < call.outputs.size(); ++i) outputs.push_back(fmt::format("y{}", i));
  return fmt::format("{}({}) => ({}) {}", formals, fmt::join(op.inputs(call), ", "), fmt::join(outputs, ", "),
                     op.body(call, opset));
}

Verdict can_write(const Node& fused, std::int64_t opset) {
  constexpr std::int64_t kAnyConstant = 9;  // before, a Constant was of floats
  try {
    const std::string body = find_fused_op(fused.op())->body(call_of(fused), static_cast<int>(opset));
    const bool integers = body.find("int64") != std::string::npos || body.find("uint8") != std::string::npos;
    return opset >= kAnyConstant || !integers ? yes() : no("its body needs constants of opset 9");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return no(error.what());
  }
}

void settle(Node& fused) {
  Call call = call_of(fused);
  if (find_fused_op(fused.op())->infer(call)) fused.attrs = call.attrs;
}

Function make_function(const std::string& name, const std::string& text, std::int64_t opset) {
  const std::string whole =
      fmt::format("<opset_import: [\"\" : {}], domain: \"{}\"> {} {}", opset, kDomain, name, text);
  proto::FunctionProto function;
  const auto status = onnx::OnnxParser::Parse(function, whole.c_str());
  if (!status.IsOK()) {
    throw Error(ErrorKind::internal,
                fmt::format("the body of {} does not parse: {}", name, proto::one_line(status.ErrorMessage())));
  }
  return proto::read_function(function);
}

}  // namespace modelflow
