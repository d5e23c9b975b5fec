// The fused op Pointwise: a program of elementwise ops in one pass over memory.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/ops/broadcast.h"
#include "backends/ops/pointwise_program.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

std::vector<Instruction> program_of(const Call& call) {
  return parse_program(CallAttrs(call).text("program"), call.inputs.size());
}

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) names.push_back("x" + std::to_string(i));
  return names;
}

std::string body(const Call& call, int opset) { return program_body(program_of(call), opset); }

double plain_bytes(const Call& call) { return program_bytes(call, program_of(call)); }

std::vector<std::string> attributes(const Call&, int) { return {}; }

Verdict infer(Call& call) {
  if (call.inputs.empty()) return no("takes at least one input");
  try {
    program_of(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape();
  std::vector<Dim> dims;  // from the last one on
  for (const Operand& in : call.inputs) {
    if (!in.shape.has_rank()) return yes();
    for (std::size_t i = 0; i < in.shape.rank(); ++i) {
      const Dim& dim = in.shape[in.shape.rank() - 1 - i];
      if (i >= dims.size()) {
        dims.push_back(dim);
        continue;
      }
      const std::optional<Dim> both = broadcast(dims[i], dim);
      if (!both) return no("extents do not broadcast: " + dims[i].str() + " and " + dim.str(), in.name);
      dims[i] = *both;
    }
  }
  std::reverse(dims.begin(), dims.end());
  call.outputs[0].shape = Shape(std::move(dims));
  return yes();
}

void add(Samples& all, const char* program, std::vector<Dims> dims, bool constants = false) {
  Call call{"Pointwise", {{"program", std::string(program)}}, {}, {{"y", DType::f32, {}}}};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    call.inputs.push_back(all.operand(("x" + std::to_string(i)).c_str(), dims[i], constants && i ? 4 : 0));
  }
  if (!infer(call)) throw Error(ErrorKind::internal, "Pointwise: a sample contradicts itself");
  all.calls.push_back(std::move(call));
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    add(all, "Mul x0 x1; Mul x2 x3; Add t0 t1", {{2, 12, 128, 64}, {128, 64}, {2, 12, 128, 64}, {128, 64}});
    add(all, "Add x0 x1; Sigmoid t0; Mul t1 x2", {{4, 197, 768}, {768}, {4, 197, 768}}, true);
    add(all, "Sub x0 x1; Div t0 x2; Max t1 x3", {{3, 5, 7, 11}, {5, 1, 1}, {5, 1, 1}, {}}, true);
    add(all, "Mul x0 x1; Add t0 x2", {{1, 24, 56, 56}, {1, 24, 1, 1}, {1, 24, 1, 1}}, true);
    add(all, "Mul x0 x1; Add t0 x2", {{2, 1, 9}, {1, 300, 1}, {2, 300, 9}});
    add(all, "Abs x0; Sqrt t0; Neg t1; Tanh t2; Gelu t3; GeluTanh t4; Min t5 x1", {{1000, 17}, {1, 17}});
    add(all, "SiLU x0; Mish t0; Relu t1; Mul t2 t2; Sigmoid t3; Reciprocal t4; Add t5 x1", {{33}, {}}, true);
    add(all, "Abs x0; Max t0 x1; Log t1; Mul t2 x2", {{2, 80, 300}, {}, {}}, true);
    add(all, "Mul x0 x1; Sin t0; Mul t1 t1; Mul x2 t2; Add x0 t3", {{1, 96, 700}, {96, 1}, {96, 1}}, true);  // Snake
    add(all, "Sub x0 x1; Exp t0; Mul t1 x2", {{2, 7, 300}, {300}, {2, 7, 300}});
    add(all, "Cos x0; Sin x0; Add t0 t1", {{3, 5, 7}});
    add(all, "AtLeast x0 x1; AtMost t0 x2; Mul t1 x0", {{3, 5, 7}, {}, {}}, true);
    add(all, "Mul x0 x0; Add t0 x0", {{}});
    add(all, "Mul x0 x1; Add t0 x0", {{0, 5}, {5}});
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp pointwise_op = {
    .kind = "Pointwise",
    .doc = "A chain or a tree of elementwise ops as one pass over memory; operands broadcast.",
    .names = 6,
    .min_inputs = 1,
    .max_inputs = 8,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"program", std::string()}},
    .elementwise = true,
    .plain_bytes = plain_bytes,
};

}  // namespace modelflow::ops
