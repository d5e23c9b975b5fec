// Work in a child process that may end.
#pragma once

#include <functional>
#include <string_view>

#include "modelflow/limits.h"

namespace modelflow::tools {

/// The steps that decide what an interrupted run leaves behind; before them nothing is written.
constexpr std::string_view kSaving = "save", kWritten = "written";

/// Where the work has come to, readable by the process that waits for it.
class Step {
 public:
  void set(std::string_view name);
  std::string_view name() const { return text_; }

 private:
  char text_[80] = {};
};

/// The exit code of `work`, which runs in a child process: a model goes through ONNX Runtime before anything is known
/// of it, and a damaged one can end the process that runs it. Then one line on stderr says at which step, and the code
/// is that of invalid input when it was the original model that ran. Signals sent to this process reach the child. Code
/// 130 means interrupted, which is said here, and temporary files go with this process even if the child has no time
/// for that. Past a limit of time or memory the child is ended, whatever it is at: the limits that the library looks at
/// between its steps hold within them as well. What is being written is written.
int supervised(const Limits& limits, const std::function<int(Step&)>& work);

}  // namespace modelflow::tools
