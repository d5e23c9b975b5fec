// Progress, text and numbers for a terminal.
#include "terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "modelflow/error.h"

namespace modelflow::tools {

namespace {

/// ", 12 s left", once that is more than a guess.
std::string time_left(double seconds, double done) {
  if (done < 0.05 || seconds < 0.5) return "";
  return fmt::format(", {:.0f} s left", seconds * (1 - done) / done);
}

}  // namespace

Progress::Progress(bool quiet) : on_(!quiet && isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::string_view step, double done) {
  const auto now = Clock::now();
  const std::string_view kind = step.substr(0, step.find(':'));  // "calibrate" of "calibrate: sample 3"
  if (kind != step_) step_ = kind, step_start_ = now;
  using std::chrono::milliseconds;
  if (!on_ || now - start_ < milliseconds(1000) || (shown_ && now - last_ < milliseconds(100))) return;
  last_ = now;
  shown_ = true;
  const auto since = [&](Clock::time_point start) { return std::chrono::duration<double>(now - start).count(); };
  fmt::print(stderr, "\r\033[K{:<40.40} {:3.0f} %{}  {:.0f} s", step, done * 100, time_left(since(step_start_), done),
             since(start_));
  std::fflush(stderr);
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  shown_ = false;
}

void print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !written)
    throw Error(ErrorKind::output, fmt::format("cannot write to the standard output: {}", std::strerror(errno)));
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string command_line(int argc, const char* const* argv) {
  std::string text =
      argc > 0 ? shell_word(std::string_view(argv[0]).substr(std::string_view(argv[0]).rfind('/') + 1)) : "";
  for (int i = 1; i < argc; ++i) text += " " + shell_word(argv[i]);
  return text;
}

namespace {
std::string scaled(double value, double base, const char* const (&units)[5]) {
  int i = 0;
  while (value >= base && i < 4) value /= base, ++i;
  return i == 0 ? fmt::format("{:.0f}{}", value, units[0]) : fmt::format("{:.1f}{}", value, units[i]);
}
}  // namespace

std::string human_bytes(double bytes) { return scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB"}); }
std::string human_count(double count) { return scaled(count, 1000, {"", " k", " M", " G", " T"}); }

}  // namespace modelflow::tools
