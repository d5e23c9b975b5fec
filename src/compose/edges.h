// What goes from one part of a merged model into another one.
#pragma once

#include <cstddef>
#include <vector>

#include "modelflow/compose.h"

namespace modelflow {

/// An edge by places: `value` is the output or input of part `from`, `input` the place among the inputs of part `to`.
struct Link {
  std::size_t from = 0, to = 0, input = 0;
  Value* value = nullptr;
};

/// The edges that names tell, where the user says none. Throws Error(usage) for a part that nothing feeds.
std::vector<Edge> edges_by_name(const std::vector<Part>& parts);

/// The edges found in their parts. Throws Error(usage) for what is not there, is fed twice, feeds itself, or is of
/// another type or shape, with both ends and what would fit.
std::vector<Link> links(const std::vector<Part>& parts, const std::vector<Edge>& edges);

}  // namespace modelflow
