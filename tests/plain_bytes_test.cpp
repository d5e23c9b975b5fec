// What programs say that plain ops move in their place is what the nodes of their bodies read and write.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/ops/pointwise_program.h"
#include "modelflow/kernel.h"
#include "modelflow/modelflow.h"
#include "src/emit/emit.h"
#include "tests/domains/cases.h"

namespace modelflow {
namespace {

/// The body of a call as a graph of standard ops, with the extents of the call.
Model written_out(const Call& call) {
  Model model;
  model.opsets[""] = 18;
  model.ir_version = 8;
  Graph& graph = model.graph();
  std::vector<Value*> inputs;
  for (const Operand& in : call.inputs) inputs.push_back(&graph.add_input(in.name, Type::tensor(in.dtype, in.shape)));
  graph.add_output(*graph.add("modelflow." + call.op, inputs, {.attrs = call.attrs}).output());
  emit_functions(model);
  Model flat = inline_functions(model);
  infer_types(flat);
  return flat;
}

double bytes_of(DType type, const Shape& shape) { return bits(type) / 8.0 * shape.known_elements(); }

double bytes_of(const Value& value) { return bytes_of(value.dtype(), value.shape()); }

/// Every input and the result once.
double least_bytes(const Call& call) {
  double bytes = bytes_of(call.outputs[0].dtype, call.outputs[0].shape);
  for (const Operand& in : call.inputs) bytes += bytes_of(in.dtype, in.shape);
  return bytes;
}

bool is_constant(const Value* value) {
  return value->constant() || (value->producer() && value->producer()->is("Constant"));
}

struct Moved {
  double bytes = 0;
  std::size_t nodes = 0;
};

/// Axes of reductions and bounds of Clip are no operands of a program.
Moved moved(const Graph& graph) {
  Moved all;
  for (const auto& node : graph.nodes()) {
    if (node->is("Constant")) continue;
    ++all.nodes;
    for (const Value* input : node->inputs())
      if (input && !is_constant(input)) all.bytes += bytes_of(*input);
    all.bytes += bytes_of(*node->output());
  }
  return all;
}

class PlainBytes : public testing::TestWithParam<const char*> {};

TEST_P(PlainBytes, AreThoseOfTheBody) {
  const FusedOp& op = *find_fused_op(GetParam());
  int compared = 0;
  for (const domains::Case& which : domains::cases(GetParam(), {.per_kernel = 0})) {
    const auto operands = domains::made(which);
    const Call& call = operands->call;
    const Moved body = moved(written_out(call).graph());
    const double counted = op.plain_bytes(call) + least_bytes(call);
    const std::string program(call.attrs.text("program", ""));
    const bool one_node_each = body.nodes == ops::parse_program(program, call.inputs.size()).size();
    EXPECT_LE(counted, body.bytes) << domains::describe(which);
    if (one_node_each) {
      EXPECT_EQ(counted, body.bytes) << domains::describe(which);
    }
    compared += one_node_each;
  }
  EXPECT_GT(compared, 50);
}

INSTANTIATE_TEST_SUITE_P(Programs, PlainBytes, testing::Values("Pointwise", "Reduce"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace modelflow
