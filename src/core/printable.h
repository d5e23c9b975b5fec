// Text of any origin, made harmless for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace modelflow {

/// Text of any origin for a terminal or a log: control characters, line ends too, marks that turn the direction of
/// writing, and bytes that are no UTF-8 are written as \x1b.
std::string printable(std::string_view text);
/// The same with a line end: a name cannot make lines of its own.
std::string printable_line(std::string_view text);

}  // namespace modelflow
