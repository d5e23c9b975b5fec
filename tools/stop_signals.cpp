// Signals that stop a run: one handler for who works and who waits.
#include "stop_signals.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace modelflow::tools {
namespace {

constexpr unsigned kGrace = 1;  // seconds

volatile std::sig_atomic_t asked = 0;
volatile pid_t worker = 0;  // in the worker itself 0, as fork() has it

void give_up(int) { _exit(kInterrupted); }

void on_stop(int signal) {
  const int kept = errno;
  if (worker > 0) {
    kill(worker, signal);
  } else if (asked == 0) {
    std::signal(SIGALRM, give_up);
    alarm(kGrace);
  }
  asked = 1;
  errno = kept;
}

}  // namespace

void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_stop);
}

bool stop_asked() { return asked != 0; }

pid_t fork_worker() {
  sigset_t stops, before;
  sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&stops, signal);
  sigprocmask(SIG_BLOCK, &stops, &before);
  const pid_t made = asked != 0 ? -1 : fork();
  worker = made;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return made;
}

void forget_worker() { worker = 0; }

}  // namespace modelflow::tools
