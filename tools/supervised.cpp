// A run in a child process: steps, temporary files, how it ended.
#include "supervised.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "child_limits.h"
#include "modelflow/error.h"
#include "stop_signals.h"

namespace modelflow::tools {

void Step::set(std::string_view name) {
  const std::size_t length = std::min(name.size(), sizeof(text_) - 1);
  std::memcpy(text_, name.data(), length);
  text_[length] = 0;
  if (name == kWritten) written_ = true;
}

namespace {

namespace fs = std::filesystem;

/// A folder for temporary files that goes with this process, however the child ends. None where there is no room: then
/// the child meets the same.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "modelflow-XXXXXX").string();
    if (!error && mkdtemp(name.data())) path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void use() const {
    if (!path_.empty()) setenv("TMPDIR", path_.c_str(), 1);
  }

 private:
  fs::path path_;
};

void clear_progress() {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");  // the child's last
}

/// How a run ended that did not end by itself, said in one line with what it leaves behind.
class Ending {
 public:
  Ending(const std::string& who, const Step& step) : who_(who), step_(step) {}

  int with(int code) const { return code == kInterrupted ? interrupted() : code; }

  int by(int signal) const {
    if (signal == SIGINT || signal == SIGTERM) return interrupted();
    if (signal == SIGPIPE) return static_cast<int>(ErrorKind::output);  // who read the output has seen enough of it
    const bool original = step_.name().starts_with("run the original");
    if (signal == SIGKILL) {
      say(fmt::format("killed{}, perhaps for want of memory", at()));
      return static_cast<int>(ErrorKind::limit);
    }
    say(fmt::format(
        "crashed{} ({}){}", at(), strsignal(signal),
        original ? ": ONNX Runtime does not survive this model (--no-verify --no-measure does not run it)" : ""));
    return static_cast<int>(original ? ErrorKind::invalid_input : ErrorKind::internal);
  }

  int beyond(const std::string& limit) const {
    say(limit + at());
    return static_cast<int>(ErrorKind::limit);
  }

  int unknown() const {
    say(fmt::format("it cannot be known how the process of the run ended{}", at()));
    return static_cast<int>(ErrorKind::internal);
  }

 private:
  int interrupted() const {
    say("interrupted");
    return kInterrupted;
  }

  std::string at() const { return step_.name().empty() ? "" : fmt::format(" at the step '{}'", step_.name()); }

  void say(const std::string& what) const {
    clear_progress();
    fmt::print(stderr, "{}: {}; {}\n", who_, what,
               step_.is_written()        ? "the model is written"
               : step_.name() == kSaving ? "what was to be written is complete or as it was before"
                                         : "nothing written");
  }

  const std::string& who_;
  const Step& step_;
};

}  // namespace

int supervised(const Limits& limits, const std::string& who, const std::function<int(Step&)>& work) {
  void* shared = mmap(nullptr, sizeof(Step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Step alone;
  Step& step = shared == MAP_FAILED ? alone : *new (shared) Step;
  const pid_t parent = getpid();
  const Scratch scratch;
  const Ending ended(who, step);
  const pid_t worker = fork_worker();
  if (worker < 0) return ended.with(work(step));  // no room for another process, or already stopped
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    scratch.use();
    return getppid() == parent ? work(step) : kInterrupted;
  }
  const ChildEnd end = wait_within(limits, worker, step);
  forget_worker();
  if (!end.passed.empty()) return ended.beyond(end.passed);
  if (!end.known) return ended.unknown();
  return WIFSIGNALED(end.status) ? ended.by(WTERMSIG(end.status)) : ended.with(WEXITSTATUS(end.status));
}

}  // namespace modelflow::tools
