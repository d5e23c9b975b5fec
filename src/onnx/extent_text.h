// Extents as files spell them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "modelflow/shape.h"

namespace modelflow {

/// What a dim_param says. Beside what Dim::parse reads, expressions as PyTorch's exporter prints those of SymPy
/// ("((s72 - 127)//384) - 1", "2*Min(512, s59)"), so that they are the extents that inference finds, whatever symbols
/// that takes. Anything else is one symbol; "" and "?" are unknown.
/// `numbers`: what some symbols are known to be.
Dim read_extent(const std::string& text, const std::map<std::string, std::int64_t>& numbers = {});

/// Dim::with(numbers); a symbol that is spelled as one expression between parentheses, "(32//s79)", says something
/// then. No other: sums of such symbols are printed without parentheses around them.
Dim settled_extent(const Dim& dim, const std::map<std::string, std::int64_t>& numbers);

}  // namespace modelflow
