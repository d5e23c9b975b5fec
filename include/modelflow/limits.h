// What one run may take of memory and time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace modelflow {

/// What a model may take before it is given up with Error(limit): a file of a few hundred bytes can ask for any amount
/// of memory, time or nodes. The command line names them alike (--max-memory, ...).
struct Limits {
  double max_memory = 0;  ///< bytes beside mapped files; 0: nine tenths of what this machine (or container) has
  double timeout = 7200;  ///< seconds for all of it; 0: none
  std::size_t max_nodes = 1'000'000;  ///< of a model with all calls of its local functions written out
  int max_depth = 100;                ///< of subgraphs in subgraphs, and of functions that call functions
};

/// "500M", "8G", "8GiB" or a plain number of bytes; units are powers of 1024. Throws Error(usage).
double parse_bytes(std::string_view text);
/// Limits::max_memory, where that is 0 what it stands for; 0 where nothing can be found out.
double most_memory(const Limits& limits);
/// Bytes that a process (0: this one) holds, swapped ones included, files that it only maps not; 0 when unknown.
double memory_of(int process = 0);

}  // namespace modelflow
