// The names of elementwise ops.
#include "backends/pointwise_op.h"

#include <algorithm>
#include <array>

namespace modelflow {
namespace {

struct Name {
  std::string_view text;
  PointwiseOp op;
};

constexpr std::array kNames = {Name{"Add", PointwiseOp::add},          Name{"Sub", PointwiseOp::sub},
                               Name{"Mul", PointwiseOp::mul},          Name{"Div", PointwiseOp::div},
                               Name{"Max", PointwiseOp::max},          Name{"Min", PointwiseOp::min},
                               Name{"AtLeast", PointwiseOp::at_least}, Name{"AtMost", PointwiseOp::at_most},
                               Name{"Neg", PointwiseOp::neg},          Name{"Abs", PointwiseOp::abs},
                               Name{"Sqrt", PointwiseOp::sqrt},        Name{"Reciprocal", PointwiseOp::reciprocal},
                               Name{"Exp", PointwiseOp::exp},          Name{"Log", PointwiseOp::log},
                               Name{"Sin", PointwiseOp::sin},          Name{"Cos", PointwiseOp::cos}};

}  // namespace

PointwiseOp pointwise_op_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &Name::text);
  return found == kNames.end() ? PointwiseOp::activation : found->op;
}

}  // namespace modelflow
