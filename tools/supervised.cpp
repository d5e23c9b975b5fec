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
#include <cstring>
#include <new>

#include "modelflow/error.h"

namespace modelflow::tools {

void Step::set(std::string_view name) {
  const std::size_t length = std::min(name.size(), sizeof(text_) - 1);
  std::memcpy(text_, name.data(), length);
  text_[length] = 0;
}

namespace {

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

int ended_by(int signal, std::string_view step) {
  if (signal == SIGINT || signal == SIGTERM) return 128 + signal;
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");  // the child's last progress
  const bool original = step == "run the original";
  const std::string at = step.empty() ? "" : fmt::format(" at the step '{}'", step);
  if (signal == SIGKILL) {
    fmt::print(stderr, "optimize: killed{}, perhaps for want of memory; nothing written\n", at);
    return static_cast<int>(ErrorKind::limit);
  }
  fmt::print(stderr, "optimize: crashed{} ({}){}; nothing written\n", at, strsignal(signal),
             original ? ": ONNX Runtime does not survive this model (--no-verify --no-measure does not run it)" : "");
  return static_cast<int>(original ? ErrorKind::invalid_input : ErrorKind::internal);
}

}  // namespace

int supervised(const std::function<int(Step&)>& work) {
  void* shared = mmap(nullptr, sizeof(Step), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Step alone;
  Step& step = shared == MAP_FAILED ? alone : *new (shared) Step;
  const pid_t parent = getpid();
  if (forked() < 0) return work(step);  // no room for a second process
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent ? work(step) : 128 + SIGTERM;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return static_cast<int>(ErrorKind::internal);
  return WIFSIGNALED(status) ? ended_by(WTERMSIG(status), step.name()) : WEXITSTATUS(status);
}

}  // namespace modelflow::tools
