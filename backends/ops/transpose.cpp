// The fused op Transpose: axes in another order, for what a runtime's own Transpose copies number by number.
#include <algorithm>
#include <vector>

#include "backends/call_attrs.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {
namespace {

std::string body(const Call&, int) { return "{\n  y = Transpose <perm: ints = @perm> (x)\n}"; }

std::vector<std::string> inputs(const Call&) { return {"x"}; }

std::vector<std::string> attributes(const Call&, int) { return {"perm"}; }

bool is_permutation(Ints perm) {
  std::ranges::sort(perm);
  for (std::size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  return !perm.empty();
}

Verdict infer(Call& call) {
  const Ints perm = CallAttrs(call).ints("perm");
  if (call.inputs.size() != 1) return no("takes one input");
  if (!is_permutation(perm)) return no("perm does not name every axis once");
  const Shape& x = call.in(0).shape;
  if (x.has_rank() && x.rank() != perm.size()) return no("perm does not fit the axes", call.in(0).name);
  call.outputs.resize(1);
  call.outputs[0].dtype = call.in(0).dtype;
  call.outputs[0].shape = Shape();
  if (!x.has_rank()) return yes();
  std::vector<Dim> y;
  for (const std::int64_t axis : perm) y.push_back(x[static_cast<std::size_t>(axis)]);
  call.outputs[0].shape = Shape(std::move(y));
  return yes();
}

std::vector<Call> samples() {
  std::vector<Call> calls;
  const auto add = [&](Dims x, Ints perm) {
    calls.push_back({"Transpose", {{"perm", perm}}, {{"x", DType::f32, Shape::of(x)}}, {}});
    if (!infer(calls.back())) throw Error(ErrorKind::internal, "a sample of Transpose contradicts itself");
    calls.back().outputs[0].name = "y";
  };
  add({1, 4, 16, 2100}, {0, 3, 2, 1});             // YOLO's boxes
  add({1, 6, 32, 9, 196}, {0, 1, 4, 3, 2});        // outlook attention (VOLO)
  add({1, 64, 2, 2, 16, 16}, {0, 1, 4, 2, 5, 3});  // patches of MobileViT
  add({9, 196, 3, 12, 64}, {2, 0, 3, 1, 4});       // queries, keys and values of windows (SAM)
  add({1, 785, 8, 19}, {0, 2, 1, 3});              // heads (CoaT)
  add({128, 128, 4, 1}, {3, 2, 1, 0});
  add({3, 1, 5}, {2, 1, 0});
  add({4, 0, 3}, {2, 0, 1});
  add({7}, {0});
  return calls;
}

}  // namespace

extern const FusedOp transpose_op = {
    .kind = "Transpose",
    .doc = "Axes in another order.",
    .names = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .input_types = {DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"perm", Ints{}}},
};

}  // namespace modelflow::ops
