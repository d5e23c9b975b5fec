// The reasons for which a difference is allowed.
#include "tests/obligations/licences.h"

namespace modelflow::obligations {
namespace {

using Reasons = std::map<std::string, std::string>;

const Reasons kKinds = {
    {"normalize-spectra", "a spectrum as a product adds in another order than an FFT: inf - inf comes about elsewhere"},
    {"fuse-attention", "what is hidden is left out: where the original adds -inf to an infinite score, it has NaN"},
    {"recurrent-loops", "the LSTM and GRU of ONNX Runtime cut what goes into their activations: NaN becomes a number"},
    {"fuse-quantized", "8 bits have no NaN: what QuantizeLinear makes of it is said nowhere"},
    {"normalize-qoperator", "8 bits have no NaN: what QuantizeLinear makes of it is said nowhere"},
    {"log-softmax-from-sum", "an infinite number among those of a softmax makes NaN of others, here or there"},
    {"no-op-Add", "-0 + 0 is 0, whose inverse is another infinity"},
    {"pad-into-max-pool", "the MaxPool of ONNX Runtime takes NaN for a number that loses or wins by its place"},
    {"widen-float16", "some kernels of ONNX Runtime treat NaN otherwise in float16 than in float32"},
};

const Reasons kSpread = {
    {"space-to-depth", "what no block reads has the weight 0: 0 * inf is NaN"},
    {"normalize-spectra", "samples that are cut off, and parts that nobody reads, have the weight 0: 0 * inf is NaN"},
};

const Reasons kEmpty = {
    {"space-to-depth", "ONNX Runtime slices images of no pixels, but does not convolve them"},
    {"fold-pad", "ONNX Runtime pads images of no pixels, but does not pool or convolve them"},
    {"fuse-squeeze-excite", "ONNX Runtime has no mean of images of no pixels or no channels"},
    {"recurrent-loops", "ONNX Runtime has no LSTM and no GRU of no inputs or no units"},
    {"filters-from-the-left", "ONNX Runtime does not convolve images of no pixels"},
    {"repeated-operand", "the MatMul of ONNX Runtime does not repeat operands for a batch of none"},
    {"normalize-einsum", "the MatMul of ONNX Runtime does not repeat operands for a batch of none"},
    {"fuse-embedding", "a table of no rows has no first row, which stands for what is looked up once"},
    {"group-norm-op", "GroupNorm is for images: of no pixels there is no mean"},
};

std::string first(const Reasons& reasons, const std::map<std::string, int>& hits) {
  for (const auto& [name, reason] : reasons)
    if (hits.contains(name)) return reason;
  return "";
}

}  // namespace

std::string may_change_kinds(const std::map<std::string, int>& hits) { return first(kKinds, hits); }
std::string may_spread_kinds(const std::map<std::string, int>& hits) { return first(kSpread, hits); }
std::string may_refuse_empty(const std::map<std::string, int>& hits) { return first(kEmpty, hits); }

}  // namespace modelflow::obligations
