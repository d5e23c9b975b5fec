// Signals that stop a run, in the process that works and in the one that waits for it.
#pragma once

#include <sys/types.h>

namespace modelflow::tools {

inline constexpr int kInterrupted = 130;  ///< the exit code of a run that was stopped

/// From here on SIGINT and SIGTERM are kept for stop_asked(), and after a time of grace in the middle of a step they
/// end the process: files appear whole, and temporary ones go with it or with the one that waits for it. Who waits for
/// a worker passes them on to that and has all the time that it takes. Repeats change nothing: a terminal and `kill` on
/// a group reach worker and waiter alike.
void catch_stop_signals();
bool stop_asked();

/// fork() of a worker that this process waits for: signals reach it from its first moment until forget_worker(). -1 as
/// well where a stop was asked already: then the work ends at its first step, wherever it is done.
pid_t fork_worker();
void forget_worker();

}  // namespace modelflow::tools
