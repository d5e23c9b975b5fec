// The fused op Reduce: elementwise ops, a reduction, elementwise ops.
#include <algorithm>

#include "backends/ops/broadcast.h"
#include "backends/ops/reduce_attrs.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call& call) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) names.push_back("x" + std::to_string(i));
  return names;
}

std::vector<std::string> attributes(const Call&, int) { return {"keepdims"}; }

/// Joins the extents of those inputs that are read, from the last on; `known` falls where the rank of one is not.
Verdict join(const Call& call, const std::vector<bool>& read, bool& known, std::vector<Dim>& from_end) {
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!read[i]) continue;
    const Operand& in = call.in(i);
    known &= in.shape.has_rank();
    for (std::size_t axis = 0; known && axis < in.shape.rank(); ++axis) {
      const Dim& dim = in.shape[in.shape.rank() - 1 - axis];
      if (axis >= from_end.size()) from_end.emplace_back(1);
      const std::optional<Dim> both = broadcast(from_end[axis], dim);
      if (!both) return no("extents do not broadcast: " + from_end[axis].str() + " and " + dim.str(), in.name);
      from_end[axis] = *both;
    }
  }
  return yes();
}

/// Whether extents of the same rank may be equal.
bool may_be(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return std::ranges::equal(a, b, [](const Dim& x, const Dim& y) { return x == y || !x.known() || !y.known(); });
}

std::string body(const Call& call, int opset) {
  const ReduceAttrs reduce(call, call.inputs.size());
  bool known = true;
  std::vector<Dim> dims;
  const Verdict joined = join(call, reduce.reads_before(call.inputs.size()), known, dims);
  Ints axes = reduce.axis_list();
  // ONNX Runtime does not count axes from the end where there is nothing to reduce.
  for (std::int64_t& axis : axes) axis += joined && known ? std::ssize(dims) : 0;
  return program_body(reduce.program, opset, axes);
}

double plain_bytes(const Call& call) {
  const ReduceAttrs reduce(call, call.inputs.size());
  return program_bytes(call, reduce.program, {reduce.from_end, reduce.axes, reduce.keepdims});
}

Verdict infer(Call& call) {
  try {
    const ReduceAttrs reduce(call, call.inputs.size());
    bool known = true;
    std::vector<Dim> dims;
    if (Verdict v = join(call, reduce.reads_before(call.inputs.size()), known, dims); !v) return v;
    if (known && dims.size() < reduce.from_end) return no("the reduced axes lie outside");
    const std::vector<Dim> whole = dims;
    if (known) {
      const auto first = dims.begin() + static_cast<std::ptrdiff_t>(reduce.from_end - reduce.axes);
      const auto end = dims.begin() + static_cast<std::ptrdiff_t>(reduce.from_end);
      if (reduce.keepdims) {
        std::fill(first, end, Dim(1));
      } else {
        dims.erase(first, end);
      }
    }
    const std::vector<Dim> reduced = dims;
    if (Verdict v = join(call, reduce.reads_behind(call.inputs.size()), known, dims); !v) return v;
    if (known && !may_be(dims, reduced) && !(reduce.keepdims && may_be(dims, whole)))
      return no("the result is neither of the reduced shape nor, with keepdims, of the whole one");
    std::reverse(dims.begin(), dims.end());
    call.outputs.resize(1);
    call.outputs[0].dtype = float_type(call);
    call.outputs[0].shape = known ? Shape(std::move(dims)) : Shape();
    return yes();
  } catch (const Error& error) {
    return no(error.what());
  }
}

struct Sample {
  const char* program;
  std::vector<Dims> dims;
  std::int64_t axis = -1, axes = 1;
  bool keepdims = true;
};

void add(Samples& all, const Sample& sample) {
  Call call{"Reduce", {{"program", std::string(sample.program)}}, {}, {{"y", DType::f32, {}}}};
  call.attrs.set("axis", sample.axis).set("axes", sample.axes).set("keepdims", sample.keepdims ? 1 : 0);
  for (std::size_t i = 0; i < sample.dims.size(); ++i)
    call.inputs.push_back(all.operand(("x" + std::to_string(i)).c_str(), sample.dims[i]));
  if (!infer(call)) throw Error(ErrorKind::internal, "Reduce: a sample contradicts itself");
  all.calls.push_back(std::move(call));
}

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    const char *l2 = "ReduceL2 x0; Max t0 x1; Div x0 t1", *pool = "Mul x0 x1; ReduceSum t0; Div t1 x2";
    add(all, {.program = l2, .dims = {{3, 384}, {}}});
    add(all, {.program = l2, .dims = {{2, 5, 1030}, {1}}});
    add(all, {.program = l2, .dims = {{2, 24, 9, 7}, {}}, .axis = -3});
    add(all, {.program = pool, .dims = {{2, 11, 384}, {2, 11, 1}, {2, 384}}, .axis = -2, .keepdims = false});
    add(all, {.program = pool, .dims = {{1, 700, 40}, {1, 700, 1}, {}}, .axis = -2, .keepdims = false});
    add(all, {.program = pool, .dims = {{3, 5, 6, 20}, {6, 20}, {3, 1}}, .axis = -2, .axes = 2, .keepdims = false});
    add(all, {.program = "Sub x0 x1; Mul t0 t0; ReduceMean t1; Add t2 x2; Sqrt t3; Div t0 t4",
              .dims = {{4, 600}, {4, 1}, {}}});
    add(all, {.program = "ReduceMean x0; Sub x0 t0; Mul t1 t1", .dims = {{2, 6, 5, 8}}, .axis = -2, .axes = 2});
    add(all, {.program = "Abs x0; ReduceMax t0; Sigmoid t1", .dims = {{900, 7}}, .keepdims = false});
    add(all, {.program = "ReduceMin x0; Neg t0", .dims = {{2, 33, 530}}, .axis = -2});
    add(all, {.program = "Mul x0 x1; ReduceSumSquare t0", .dims = {{5, 2, 9}, {9}}, .axis = -3});
    add(all, {.program = "Mul x0 x1; ReduceSum t0; Sqrt t1; Div x0 t2", .dims = {{1100, 5}, {1100, 1}}});
    add(all, {.program = "Abs x0; ReduceMax t0; Add t1 x1; Div x0 t2", .dims = {{2, 1000, 6}, {1000, 1}}, .axis = -2});
    add(all, {.program = "Abs x0; ReduceSum t0", .dims = {{700, 3}}, .axis = -2});
    add(all, {.program = "Abs x0; ReduceMean t0; Neg t1", .dims = {{2, 3}}, .keepdims = false});
    add(all, {.program = "ReduceSum x0; Mul t0 x0", .dims = {{0, 4}}});
    add(all, {.program = "ReduceSum x0; Add t0 x1", .dims = {{3, 0, 4}, {}}, .axis = -2});
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp reduce_op = {
    .kind = "Reduce",
    .doc = "A reduction with the elementwise ops in front of it and behind it; operands broadcast.",
    .names = 4,
    .min_inputs = 1,
    .max_inputs = 7,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"program", std::string()},
                 {"axis", std::int64_t{-1}},
                 {"axes", std::int64_t{1}},
                 {"keepdims", std::int64_t{1}}},
    .axis = "axis",
    .plain_bytes = plain_bytes,
};

}  // namespace modelflow::ops
