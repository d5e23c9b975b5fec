#include "modelflow/error.h"

namespace modelflow {
namespace {

/// what() stays one line whatever the message quotes.
std::string one_line(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
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
