// What products by weights in blocks that share a scale (QMatMul4, MatMulNBits) have alike: ONNX text and inference.
#pragma once

#include <string>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// ONNX text of `b_steps` (float, [columns, blocks, numbers of a block]), which the bytes b hold in 4 bits each, the
/// lower half first; of `w` [depth, columns], which are these less `zero` (a value or a constant of the body) times
/// b_scale [columns, blocks]. The value `two` (int64 [1]) has to be there. A runtime folds all of it: weights are
/// constant.
std::string four_bits_text();
std::string blocked_weights_text();

/// Fills the outputs of a product by b [columns, blocks, bytes of a block]; the inputs from 2 up to `bias` are its
/// scales and zero points, [columns, blocks]. For the rest it is a MatMul by [depth, columns].
Verdict infer_blocked_product(Call& call, std::int64_t block, std::int64_t bytes, std::size_t bias);

}  // namespace modelflow::ops
