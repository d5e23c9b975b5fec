// The order of channels that a channel shuffle has.
#pragma once

#include "modelflow/attr.h"

namespace modelflow::passes {

/// The groups that this order takes indices in turn from: {0, 3, 1, 4, 2, 5} is 2. Less than 2: none.
std::int64_t groups_of(const Ints& order);
/// The order that takes `count` indices in turn from so many groups.
Ints shuffled(std::int64_t count, std::int64_t groups);

}  // namespace modelflow::passes
