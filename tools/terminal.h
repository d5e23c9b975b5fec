// What a terminal shows.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace modelflow::tools {

/// One line of progress on stderr, only on a terminal and only for work of more than a second: the step, how much of it
/// is done and how long the rest of it will take, and the seconds so far. It has no colours.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view step, double done);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool on_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_, step_start_ = start_;
  std::string step_;
};

/// Text on stdout, all of it; throws Error(output).
void print(const std::string& text);

/// One word to a shell: in single quotes where it would see more.
std::string shell_word(std::string_view word);
/// The command as it was typed, but for its folder: a shell takes it again.
std::string command_line(int argc, const char* const* argv);

/// "12.3 MiB", "4.1 GFLOP": a number with a binary or decimal prefix.
std::string human_bytes(double bytes);
std::string human_count(double count);

}  // namespace modelflow::tools
