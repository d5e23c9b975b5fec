// A child process and what it may take, looked at from outside: code of others runs in it, and cannot be asked to stop.
#include "child_limits.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

namespace modelflow::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPause = 20;  // milliseconds between two looks
/// The library gives up by itself between two steps, which frees and tells more.
constexpr double kGrace = 0.25;

/// What stands for a process in poll(); -1 on kernels before 5.3.
int open_process(pid_t process) { return static_cast<int>(::syscall(SYS_pidfd_open, process, 0)); }

/// Ends at once when the process does, where the kernel can tell that.
void pause_for(int process_fd) {
  pollfd wait = {process_fd, POLLIN, 0};
  ::poll(&wait, process_fd >= 0 ? 1 : 0, kPause);
}

std::string passed(const Limits& limits, Clock::time_point start, pid_t child) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (limits.timeout > 0 && seconds > limits.timeout + kGrace)
    return fmt::format("not done within {:g} s (--timeout)", limits.timeout);
  const double most = most_memory(limits), bytes = memory_of(child);
  if (most > 0 && bytes > most)
    return fmt::format("{:.0f} MiB of memory, the limit is {:.0f} MiB (--max-memory)", bytes / (1 << 20),
                       most / (1 << 20));
  return "";
}

}  // namespace

ChildEnd wait_within(const Limits& limits, pid_t child, const Step& step) {
  const Clock::time_point start = Clock::now();
  const int process = open_process(child);
  ChildEnd end;
  while (true) {
    const pid_t done = ::waitpid(child, &end.status, WNOHANG);
    end.known = done == child;
    if (end.known || (done < 0 && errno != EINTR)) break;
    const bool saves = step.name() == kSaving || step.name() == kWritten;
    if (!saves && end.passed.empty()) {
      end.passed = passed(limits, start, child);
      if (!end.passed.empty()) ::kill(child, SIGKILL);
    }
    pause_for(process);
  }
  if (process >= 0) ::close(process);
  if (end.known && WIFEXITED(end.status)) end.passed.clear();  // it was done before the signal came
  return end;
}

}  // namespace modelflow::tools
