// A child process within limits.
#pragma once

#include <sys/types.h>

#include <string>

#include "modelflow/limits.h"
#include "supervised.h"

namespace modelflow::tools {

struct ChildEnd {
  int status = 0;      // as waitpid() has it
  bool known = false;  // whether it is
  std::string passed;  // the limit that ended it, in words
};

/// Waits for the child; past a limit it is killed, except while it saves.
ChildEnd wait_within(const Limits& limits, pid_t child, const Step& step);

}  // namespace modelflow::tools
