// Sharing the work of a loop out to the threads of a call.
#pragma once

#include "modelflow/kernel.h"

namespace modelflow::cpu {

/// Runs body(begin, end, task) on `tasks` shares of `items`; a single share on the calling thread.
template <class Body>
void share(Invocation& call, std::size_t items, std::size_t tasks, const Body& body) {
  if (tasks <= 1) return body(std::size_t{0}, items, std::size_t{0});
  call.parallel(tasks, [&](std::size_t i) { body(items * i / tasks, items * (i + 1) / tasks, i); });
}

/// So many tasks or a few less: where there are more than threads, no thread is left with one more than the others.
constexpr std::size_t even_tasks(std::size_t tasks, std::size_t threads) {
  return tasks > threads ? tasks - tasks % threads : tasks;
}

/// How many tasks a pass over `floats` is worth.
std::size_t tasks_for(std::size_t floats, const Invocation& call);

}  // namespace modelflow::cpu
