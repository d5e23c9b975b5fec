// Results of convolutions that a Concat joins.
#pragma once

#include "modelflow/graph.h"

namespace modelflow::passes {

/// The Concat along channels that computes `value`, when it joins nothing but results of convolutions and all of them
/// have one reader: what follows may be done to each part. Null for anything else.
Node* joined_convolutions(const Value& value);

}  // namespace modelflow::passes
