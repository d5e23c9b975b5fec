// ONNX text and inference of products by weights in blocks.
#include "backends/ops/blocked_product.h"

#include "backends/ops/matmul_attrs.h"

namespace modelflow::ops {

std::string four_bits_text() {
  return "four = Constant <value = uint8 {4}> ()\nthree = Constant <value = int64[1] {3}> ()\n"
         "high = BitShift <direction = \"RIGHT\"> (b, four)\nleft = BitShift <direction = \"LEFT\"> (b, four)\n"
         "low = BitShift <direction = \"RIGHT\"> (left, four)\nhigh_halves = Unsqueeze (high, three)\n"
         "low_halves = Unsqueeze (low, three)\nhalves = Concat <axis = 3> (low_halves, high_halves)\n"
         "b_floats = Cast <to = 1> (halves)\nb_form = Constant <value = int64[3] {0, 0, -1}> ()\n"
         "b_steps = Reshape (b_floats, b_form)\n";
}

std::string blocked_weights_text() {
  return "b_centered = Sub (b_steps, zero)\nb_unit = Unsqueeze (b_scale, two)\nb_scaled = Mul (b_centered, b_unit)\n"
         "w_form = Constant <value = int64[2] {0, -1}> ()\nw_rows = Reshape (b_scaled, w_form)\n"
         "w = Transpose <perm = [1, 0]> (w_rows)\n";
}

Verdict infer_blocked_product(Call& call, std::int64_t block, std::int64_t bytes, std::size_t bias) {
  const Shape& b = call.in(1).shape;
  if (!b.known() || b.rank() != 3) return no("is not of three known dims", call.in(1).name);
  const std::int64_t n = b[0].value(), blocks = b[1].value();
  if (b[2].value() != bytes) return no("has other blocks", call.in(1).name);
  if (n == 0 || blocks == 0) return no("is empty", call.in(1).name);
  for (std::size_t i = 2; i < bias; ++i) {
    const Shape& shape = call.in(i).shape;
    if (shape.known() && !(shape == Shape::of({n, blocks}))) return no("is not one number per block", call.in(i).name);
  }
  Call product = call;
  product.inputs[1].shape = Shape::of({blocks * block, n});
  product.inputs.erase(product.inputs.begin() + 2, product.inputs.begin() + static_cast<std::ptrdiff_t>(bias));
  if (Verdict v = matmul_op.infer(product); !v) return v;
  call.outputs = product.outputs;
  return yes();
}

}  // namespace modelflow::ops
