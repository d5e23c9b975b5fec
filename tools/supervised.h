// Work in a child process that may end.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "modelflow/limits.h"

namespace modelflow::tools {

/// The steps that decide what a run leaves behind that does not end by itself; before them nothing is written. Limits
/// wait until they are over.
constexpr std::string_view kSaving = "save", kWritten = "written";

/// Where the work has come to, readable by the process that waits for it.
class Step {
 public:
  void set(std::string_view name);
  std::string_view name() const { return text_; }
  bool is_written() const { return written_; }  ///< whether it came to kWritten, though another step may follow

 private:
  char text_[80] = {};
  bool written_ = false;
};

/// The exit code of `work`, which runs in a child process: a model goes through ONNX Runtime before anything is known
/// of it, and a damaged one can end the process that runs it. Then one line on stderr, which begins with `who`, says at
/// which step and what is written, and the code is that of invalid input when it was the original model that ran. Code
/// kInterrupted (stop_signals.h) means that the run was stopped, which is said here, and temporary files go with this
/// process even if the child has no time for that. Past a limit of time or memory the child is ended, whatever it is at
/// but saving: the limits that the library looks at between its steps hold within them as well.
int supervised(const Limits& limits, const std::string& who, const std::function<int(Step&)>& work);

}  // namespace modelflow::tools
