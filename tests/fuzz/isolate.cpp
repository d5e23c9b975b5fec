// Work in a child process, whose crash is an answer.
#include "tests/fuzz/isolate.h"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>

namespace modelflow::fuzz {

Answer isolated(const std::function<std::string(const Say& say)>& work, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) return {"", "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {"", "no process"};
  if (child == 0) {
    close(ends[0]);
    // Of its own time, or a busy machine would end it; the clock is for what waits for ever. Either ends the process.
    const itimerval own{{}, {seconds, 0}};
    setitimer(ITIMER_PROF, &own, nullptr);
    alarm(10 * static_cast<unsigned>(seconds));
    const Say say = [&](const std::string& text) {
      for (std::size_t done = 0; done < text.size();) {
        const ssize_t put = write(ends[1], text.data() + done, text.size() - done);
        if (put <= 0) break;
        done += static_cast<std::size_t>(put);
      }
    };
    try {
      say(work(say));
    } catch (const std::exception& error) {
      say(std::string("exception: ") + error.what());
    }
    _exit(0);
  }
  close(ends[1]);
  Answer answer;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
    answer.text.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    answer.death = WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF
                       ? "more than " + std::to_string(seconds) + " s"
                       : "signal " + std::to_string(WTERMSIG(status));
  return answer;
}

}  // namespace modelflow::fuzz
