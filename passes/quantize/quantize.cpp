#include "passes/quantize/quantize.h"

namespace modelflow::passes {

std::vector<Pass> quantizing(const Options& options) {
  if (options.precision == Precision::i8) return {place_quantizers(), fuse_quantized()};
  return {};
}

}  // namespace modelflow::passes
