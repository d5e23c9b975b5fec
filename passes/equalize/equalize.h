// The passes of the stage equalize.
#pragma once

#include <string>
#include <vector>

#include "modelflow/modelflow.h"

/// Float models that lose less in 8 bits: channels that one scale has to hold are brought to like sizes. What the model
/// computes stays, up to the rounding of its weights.
namespace modelflow::passes {

Pass equalize_convolutions();
Pass equalize_products();

/// A value whose channels Context::plan should know, and the axis that they lie on, counted from the end.
struct ChannelsOf {
  std::string value;
  std::size_t from_end = 1;
};
std::vector<ChannelsOf> channels_to_observe(const Graph& graph);

}  // namespace modelflow::passes
