#include <fmt/format.h>

#include <sstream>

#include "modelflow/modelflow.h"

namespace modelflow {

std::pair<std::string, Dims> parse_input_shape(std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return Error(ErrorKind::usage, fmt::format("input shape '{}': {}, expected NAME:1,3,224,224", text, what));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) throw wrong("no name");
  Dims dims;
  std::istringstream parts(std::string(text.substr(colon + 1)));
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    const long long dim = std::strtoll(part.c_str(), &end, 10);
    if (part.empty() || *end != '\0' || dim < 0) throw wrong(fmt::format("'{}' is not a dim", part));
    dims.push_back(dim);
  }
  return {std::string(text.substr(0, colon)), dims};
}

}  // namespace modelflow
