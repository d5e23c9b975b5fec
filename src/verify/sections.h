// The parts of an output that a Concat joins: detectors give boxes in pixels beside scores from 0 to 1.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "modelflow/graph.h"

namespace modelflow {

/// A part of an axis. A difference of up to `floor` means nothing in it (src/verify/bounded.h).
struct Section {
  std::int64_t begin = 0;
  double floor = 0;
};

/// The parts along each axis that is joined, in order; none along others, or where an extent is not known.
using Sections = std::map<std::size_t, std::vector<Section>>;

/// The numbers of a tensor by the sections that they lie in along all axes.
struct Cells {
  std::vector<std::size_t> of;  ///< by number
  std::vector<double> floors;   ///< by cell
};

/// One cell where the sections do not fit the rank. `floor`: that of the whole.
Cells cells_of(const Dims& dims, const Sections& sections, double floor);

/// Seen through Identity, Transpose, other Concats, and Reshapes that keep the last axis.
Sections sections_of(const Value& value);

}  // namespace modelflow
