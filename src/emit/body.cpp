// The body of a fused op for one call, as text and as a function.
#include "src/emit/body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <onnx/defs/parser.h>

#include <algorithm>

#include "modelflow/function.h"
#include "src/emit/typed_body.h"
#include "src/graph/op_name.h"
#include "src/onnx/read.h"
#include "src/text/print.h"

namespace modelflow {

namespace {

std::string float_body_text(const FusedOp& op, const Call& call, int opset) {
  const std::vector<std::string> attributes = op.attributes(call, opset);
  const std::string formals = attributes.empty() ? "" : fmt::format("<{}> ", fmt::join(attributes, ", "));
  std::vector<std::string> outputs = {"y"};  // then y1, y2
  for (std::size_t i = 1; i < call.outputs.size(); ++i) outputs.push_back(fmt::format("y{}", i));
  return fmt::format("{}({}) => ({}) {}", formals, fmt::join(op.inputs(call), ", "), fmt::join(outputs, ", "),
                     op.body(call, opset));
}

/// An operand or result that never has an element; constants stand for options that are not there (the roi of Resize).
const Value* empty_value(const Node& node) {
  const auto empty = [](const Value* value) {
    return value && !value->constant() && value->shape().has_rank() &&
           std::ranges::any_of(value->shape().dims(), [](const Dim& dim) { return dim.number() == 0; });
  };
  for (const auto* values : {&node.inputs(), &node.outputs()})
    if (const auto found = std::ranges::find_if(*values, empty); found != values->end()) return *found;
  return nullptr;
}

}  // namespace

Verdict can_write(const Call& call, std::int64_t opset) {
  constexpr std::int64_t kAnyConstant = 9;  // before, a Constant was of floats
  try {
    const std::string body = body_text(*find_fused_op(call.op), call, static_cast<int>(opset));
    const bool integers = body.find("int64") != std::string::npos || body.find("uint8") != std::string::npos;
    return opset >= kAnyConstant || !integers ? yes() : no("its body needs constants of opset 9");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return no(error.what());
  }
}

std::string body_text(const FusedOp& op, const Call& call, int opset) {
  const std::string text = float_body_text(op, call, opset);
  const DType type = float_type(call);
  if (!takes_any_float(op) || type == DType::f32) return text;
  if (type != DType::f16 && type != DType::bf16)
    throw Error(ErrorKind::unsupported,
                "its operands are of " + (type == DType::undefined ? "several float types" : std::string(name(type))));
  Function body = make_function("body", text, opset);
  compute_in(type, body, call, opset);
  return function_body_text(body);
}

Verdict may_stay(const Node& fused, const Context& context) {
  if (const Value* empty = empty_value(fused)) return no("has no elements", empty->name());
  Choice choice = choose_kernel(call_of(fused), context.target);
  const DType half = half_type(context.options);  // what values become later
  if (!choice.kernel && half != DType::undefined) choice = choose_kernel(in_type(call_of(fused), half), context.target);
  if (!choice.kernel) return no("no kernel takes " + joined_op(fused) + ": " + choice.reason);
  if (!choice.kernel->create) return no(std::string(choice.kernel->name) + " can plan only");
  return can_write(call_of(fused), context.model.opset());
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
