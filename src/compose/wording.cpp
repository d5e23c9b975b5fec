// Types and names for messages about models that are put together.
#include "src/compose/wording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "modelflow/error.h"
#include "src/core/nearest.h"

namespace modelflow {

std::string text(const Type& type) {
  if (type.kind == Type::Kind::unknown) return "of unknown type";
  if (!type.is_tensor()) return "(no tensor)";
  return fmt::format("{}{}", name(type.dtype), type.shape.has_rank() && type.shape.rank() == 0 ? "" : type.shape.str());
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  if (names.empty()) return "nothing";
  if (names.size() > kMost)
    return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kMost, ", "), names.size() - kMost);
  if (names.size() == 1) return names.front();
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

std::vector<std::string> names_of(const std::vector<Value*>& values) {
  std::vector<std::string> names(values.size());
  std::ranges::transform(values, names.begin(), &Value::name);
  return names;
}

std::size_t place_of(const std::vector<Value*>& values, const std::string& name, const char* kind,
                     const std::string& owner) {
  const std::vector<std::string> names = names_of(values);
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw Error(ErrorKind::usage, fmt::format("{} has no {} '{}': it has {}{}", owner, kind, name, listed(names),
                                            did_you_mean(name, names)));
}

}  // namespace modelflow
