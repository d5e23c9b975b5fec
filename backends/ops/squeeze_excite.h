// What SqueezeExcite and QSqueezeExcite share. A call's op says which of them it is.
#pragma once

#include "backends/ops/sample_weights.h"
#include "modelflow/kernel.h"

namespace modelflow::ops {

std::string excite_body(const Call& call, int opset);
std::vector<std::string> excite_inputs(const Call& call);
std::vector<std::string> excite_attributes(const Call& call, int opset);
Attrs excite_defaults();
Verdict infer_excite(Call& call);
/// The input that holds the weights of the second convolution; those of the first are input 1.
std::size_t second_weights(const Call& call);

struct ExciteSample {
  Dims x;
  std::int64_t squeezed;
  const char *layout, *activation, *gate;
  std::int64_t skip;
};
/// A call of SqueezeExcite with weights that `all` keeps.
Call excite_sample(Samples& all, const ExciteSample& sample);

}  // namespace modelflow::ops
