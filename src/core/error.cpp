// Messages of errors as one line, with the context around them.
#include "modelflow/error.h"

#include "src/core/printable.h"

namespace modelflow {
namespace {

constexpr std::size_t kMostBytes = 4000;  // of a message; a name in it may have megabytes
constexpr std::size_t kStart = 2500, kEnd = 1200;

/// what() stays one line, and harmless to a terminal, whatever the message quotes.
std::string one_line(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  line = printable(line);
  // A character that is cut through would not be printable: the second look is at two short pieces.
  if (line.size() > kMostBytes) line = printable(line.substr(0, kStart) + " [...] " + line.substr(line.size() - kEnd));
  return line;
}

}  // namespace

Error::Error(ErrorKind kind, std::string_view message) : std::runtime_error(one_line(message)), kind_(kind) {}

Error Error::within(std::string_view context) const {
  std::string message(context);
  message += ": ";
  message += what();
  return Error(kind_, message);
}

}  // namespace modelflow
