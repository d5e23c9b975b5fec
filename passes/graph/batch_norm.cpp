// Reads BatchNormalization in inference.
#include "passes/graph/batch_norm.h"

#include <cmath>

namespace modelflow::passes {

Affine affine_of(const Node& bn) {
  const auto numbers = [&](std::size_t i) { return bn.input(i)->constant()->to_doubles(); };
  const std::vector<double> gamma = numbers(1), beta = numbers(2), mean = numbers(3), var = numbers(4);
  const double epsilon = bn.attrs.number("epsilon", 1e-5F);
  Affine affine;
  for (std::size_t c = 0; c < gamma.size(); ++c) {
    affine.scale.push_back(gamma[c] / std::sqrt(var[c] + epsilon));
    affine.shift.push_back(beta[c] - mean[c] * affine.scale[c]);
  }
  return affine;
}

Verdict inference_form(const Node& bn) {
  if (!bn.is("BatchNormalization")) return no("is no BatchNormalization", bn.label());
  if (bn.attrs.integer("training_mode") != 0) return no("it is in training mode");
  if (bn.attrs.integer("spatial", 1) != 1) return no("spatial = 0 normalises every position on its own");
  for (std::size_t i = 1; i < bn.outputs().size(); ++i)
    if (bn.output(i)) return no("its running statistics are wanted", bn.output(i)->name());
  for (std::size_t i = 1; i < 5; ++i) {
    const Tensor* numbers = bn.input(i) ? bn.input(i)->constant() : nullptr;
    if (!numbers) return no("its parameters are not constant");
    if (numbers->dims() != bn.input(1)->constant()->dims()) return no("scale, bias, mean and variance differ in size");
  }
  return yes();
}

}  // namespace modelflow::passes
