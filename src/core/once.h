// What a user may say once.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "modelflow/error.h"

namespace modelflow {

/// More entries of a map from names. Throws Error(usage) where one is there already: the first must not win in silence.
template <class Map>
void add_once(Map& all, Map more, std::string_view what) {
  all.merge(more);
  if (!more.empty()) throw Error(ErrorKind::usage, fmt::format("{}: '{}' is given twice", what, more.begin()->first));
}

}  // namespace modelflow
