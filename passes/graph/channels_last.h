// Channels last: where axes stand then.
#pragma once

#include "modelflow/graph.h"

namespace modelflow::passes {

/// "Channels last" of a value of rank 3 or more: axis 1 stands behind all others.
Ints to_last(std::size_t rank);   ///< the Transpose that makes it: [0,2,3,1]
Ints to_first(std::size_t rank);  ///< and the one that undoes it: [0,3,1,2]
/// Where `axis` (may be negative) stands when channels are last.
std::int64_t last_axis(std::int64_t axis, std::size_t rank);
Shape last_shape(const Shape& shape);
/// The name of a value that another one was made of by moving its channels: it tells verification what is the same.
std::string last_name(const std::string& plain);

}  // namespace modelflow::passes
