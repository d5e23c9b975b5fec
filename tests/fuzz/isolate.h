// Work in a process of its own: what crashes or hangs there is an answer here.
#pragma once

#include <functional>
#include <string>

namespace modelflow::fuzz {

struct Answer {
  std::string text;   ///< what the work said and returned
  std::string death;  ///< "" or "signal 11", "more than 60 s"
};

/// Says something on the way: it is part of the answer even if the process dies then.
using Say = std::function<void(const std::string&)>;

/// Runs `work` in a copy of this process, for at most `seconds` of its own time.
Answer isolated(const std::function<std::string(const Say& say)>& work, int seconds);

}  // namespace modelflow::fuzz
