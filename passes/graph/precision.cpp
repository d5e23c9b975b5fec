// Which precisions reach convolutions, and which change no op.
#include "passes/graph/precision.h"

#include "modelflow/pass.h"

namespace modelflow::passes {

bool lowers_convolutions(const Options& options) {
  switch (options.precision) {
    case Precision::f32:
      return false;
    case Precision::i8_dynamic:
    case Precision::i8_weights:
    case Precision::i4_weights:
      return half_type(options) != DType::undefined;
    default:
      return true;
  }
}

bool replaces_convolutions(const Options& options) {
  const bool all_in_16_bits = half_type(options) != DType::undefined && !quantizes_convolutions(options);
  return lowers_convolutions(options) && !all_in_16_bits;
}

bool quantizes_convolutions(const Options& options) {
  return options.precision == Precision::i8 || options.precision == Precision::automatic;
}

bool keeps_ops(const Options& options) {
  if (options.precision == Precision::f32) return true;
  const bool in_16_bits = options.precision == Precision::f16 || options.precision == Precision::bf16;
  return in_16_bits && half_type(options) != DType::undefined;
}

}  // namespace modelflow::passes
