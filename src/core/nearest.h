// "Did you mean ...?" for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace modelflow {

/// The candidate that `text` was most likely meant to be (edit distance at most a third of its length); "" when none.
std::string nearest(std::string_view text, std::span<const std::string> candidates);

/// "; did you mean 'x'?" for the end of an error message, or "".
std::string did_you_mean(std::string_view text, std::span<const std::string> candidates);

}  // namespace modelflow
