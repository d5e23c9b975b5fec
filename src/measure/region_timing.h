// How much faster each region is than what it replaced.
#pragma once

#include "src/measure/select.h"

namespace modelflow {

/// Times every region of a laid-out model by itself on the values that really flow there: its fused form against the
/// original's own nodes between the same values, or, where those have no such cut, against the inlined bodies.
/// One Timing per region of find_regions (side 1; seconds 0 where it could not be measured).
std::vector<Timing> time_regions(const Sessions& sessions, const Model& original, const Model& laid_out,
                                 const SelectTools& tools, const Feeds& feeds, const Options& options,
                                 const std::filesystem::path& plugin);

}  // namespace modelflow
