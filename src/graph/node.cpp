// Names of ops with and without domain, and what a node is called in messages.
#include <algorithm>

#include "modelflow/graph.h"
#include "modelflow/pass.h"
#include "src/graph/op_name.h"

namespace modelflow {

OpName split_op(std::string_view op) {
  if (const std::size_t colon = op.find(':'); colon != std::string_view::npos) {
    const std::string_view domain = op.substr(0, colon);
    return {domain == "ai.onnx" ? "" : domain, op.substr(colon + 1)};
  }
  const bool ours = op.size() > kDomain.size() && op.starts_with(kDomain) && op[kDomain.size()] == '.';
  if (ours) return {kDomain, op.substr(kDomain.size() + 1)};
  return {"", op};
}

std::string joined_op(const Node& node) {
  if (node.domain().empty()) return node.op();
  return node.domain() + (node.domain() == kDomain ? "." : ":") + node.op();
}

bool Node::is(std::string_view op) const {
  if (!op.ends_with(op_)) return false;  // what stands in front of it can only be the domain
  const OpName name = split_op(op);
  return name.op == op_ && name.domain == domain_;
}

std::vector<Graph*> Node::subgraphs() const {
  std::vector<Graph*> found;
  if (!attrs.may_hold_graphs()) return found;
  for (const auto& [key, attr] : attrs) {
    if (const auto* one = std::get_if<Subgraph>(&attr); one && *one) found.push_back(one->get());
    if (const auto* many = std::get_if<std::vector<Subgraph>>(&attr)) {
      for (const Subgraph& graph : *many) {
        if (graph) found.push_back(graph.get());
      }
    }
  }
  return found;
}

std::string Node::label() const {
  std::string shown = name;
  if (shown.empty()) {  // many exporters name no nodes: then the first output tells which one it is
    for (const Value* value : outputs_) {
      if (value && shown.empty()) shown = value->name();
    }
  }
  return "node '" + shown + "' (" + joined_op(*this) + ")";
}

namespace {

Operand operand(const Value* value) {
  if (!value) return {};
  return {value->name(), value->dtype(), value->shape(), value->constant()};
}

}  // namespace

const FusedOp* fused_op(const Node& node) { return node.domain() == kDomain ? find_fused_op(node.op()) : nullptr; }

bool computes(const Node& node, Family family) {
  const FusedOp* op = fused_op(node);
  return op && op->family == family;
}

bool computes(const Node& node, Family family, Form form) {
  return computes(node, family) && fused_op(node)->form == form;
}

void complete(Node& node) {
  const FusedOp* op = fused_op(node);
  if (!op) return;
  for (const auto& [name, usual] : op->defaults)
    if (!node.attrs.has(name)) node.attrs.set(name, usual);
}

std::optional<std::size_t> place_of(const Node& node, std::string_view role) {
  const FusedOp* op = fused_op(node);
  if (!op) return {};
  const std::vector<std::string> roles = op->roles ? op->roles(call_of(node)) : op->inputs(call_of(node));
  const auto found = std::ranges::find(roles, role);
  return found == roles.end() ? std::nullopt : std::optional<std::size_t>(found - roles.begin());
}

Value* input_as(const Node& node, std::string_view role) {
  const std::optional<std::size_t> place = place_of(node, role);
  return place ? node.input(*place) : nullptr;
}

std::optional<std::size_t> weights_place(const Node& node) {
  if (const FusedOp* op = fused_op(node)) return place_of(node, op->weights);
  const bool standard = node.is("Conv") || node.is("ConvTranspose") || node.is("MatMul") || node.is("Gemm");
  return standard ? std::optional<std::size_t>(1) : std::nullopt;
}

Value* weights_in(const Node& node) {
  const std::optional<std::size_t> place = weights_place(node);
  return place ? node.input(*place) : nullptr;
}

Value* weight_scales_in(const Node& node) {
  const FusedOp* op = fused_op(node);
  return op ? input_as(node, std::string(op->weights) + "_scale") : nullptr;
}

Call in_type(Call call, DType type) {
  const FusedOp* op = find_fused_op(call.op);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i].dtype == DType::f32 && !(op && std::ranges::count(op->single, i))) call.inputs[i].dtype = type;
  for (Operand& output : call.outputs)
    if (output.dtype == DType::f32) output.dtype = type;
  return call;
}

Call call_of(const Node& node) {
  Call call;
  call.op = node.op();
  call.attrs = node.attrs;
  for (const Value* value : node.inputs()) call.inputs.push_back(operand(value));
  for (const Value* value : node.outputs()) call.outputs.push_back(operand(value));
  return call;
}

}  // namespace modelflow
