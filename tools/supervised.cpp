// A run in a child process: steps, signals, temporary files.
#include "supervised.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "child_limits.h"
#include "modelflow/error.h"

namespace modelflow::tools {

void Step::set(std::string_view name) {
  const std::size_t length = std::min(name.size(), sizeof(text_) - 1);
  std::memcpy(text_, name.data(), length);
  text_[length] = 0;
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

volatile pid_t child = 0;

// Ctrl-C on a terminal reaches the child as well; what `kill` sent came to this process alone.
void forward(int signal, siginfo_t* info, void*) {
  if (info->si_code <= 0) kill(child, signal);
}

void forward_signals() {
  struct sigaction action = {};
  action.sa_sigaction = forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

/// fork() so that a signal of the moment in between reaches the child as well.
pid_t forked() {
  sigset_t stops, before;
  sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&stops, signal);
  sigprocmask(SIG_BLOCK, &stops, &before);
  child = fork();
  if (child > 0) forward_signals();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return child;
}

constexpr int kInterrupted = 130;

void clear_progress() {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");  // the child's last
}

/// Says what an interrupted run leaves behind.
int interrupted(int code, std::string_view step) {
  clear_progress();
  fmt::print(stderr, "optimize: interrupted; {}\n",
             step == kSaving    ? "what was to be written is complete or as it was before"
             : step == kWritten ? "the model is written"
                                : "nothing written");
  return code;
}

int ended_with(int code, std::string_view step) { return code == kInterrupted ? interrupted(code, step) : code; }

int ended_by(int signal, std::string_view step) {
  if (signal == SIGINT || signal == SIGTERM) return interrupted(128 + signal, step);
  if (signal == SIGPIPE) return static_cast<int>(ErrorKind::output);  // who read the output has seen enough of it
  clear_progress();
  const bool original = step.starts_with("run the original");
  const std::string at = step.empty() ? "" : fmt::format(" at the step '{}'", step);
  if (signal == SIGKILL) {
    fmt::print(stderr, "optimize: killed{}, perhaps for want of memory; nothing written\n", at);
    return static_cast<int>(ErrorKind::limit);
  }
  fmt::print(stderr, "optimize: crashed{} ({}){}; nothing written\n", at, strsignal(signal),
             original ? ": ONNX Runtime does not survive this model (--no-verify --no-measure does not run it)" : "");
  return static_cast<int>(original ? ErrorKind::invalid_input : ErrorKind::internal);
}

int stopped(const std::string& limit, std::string_view step) {
  clear_progress();
  fmt::print(stderr, "optimize: {}{}; nothing written\n", limit,
             step.empty() ? "" : fmt::format(" at the step '{}'", step));
  return static_cast<int>(ErrorKind::limit);
}

}  // namespace

int supervised(const Limits& limits, const std::function<int(Step&)>& work) {
  void* shared = mmap(nullptr, sizeof(Step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Step alone;
  Step& step = shared == MAP_FAILED ? alone : *new (shared) Step;
  const pid_t parent = getpid();
  const Scratch scratch;
  if (forked() < 0) return ended_with(work(step), step.name());  // no room for a second process
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    scratch.use();
    return getppid() == parent ? work(step) : 128 + SIGTERM;
  }
  const ChildEnd end = wait_within(limits, child, step);
  if (!end.passed.empty()) return stopped(end.passed, step.name());
  if (!end.known) return static_cast<int>(ErrorKind::internal);
  return WIFSIGNALED(end.status) ? ended_by(WTERMSIG(end.status), step.name())
                                 : ended_with(WEXITSTATUS(end.status), step.name());
}

}  // namespace modelflow::tools
