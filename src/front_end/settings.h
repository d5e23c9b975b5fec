// What front ends are made of as users write it: a preset and changes, in one word or in a JSON file.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace modelflow {

/// What a name sets. Lists are written 0.5/0.5/0.5, or as arrays in JSON.
using Setting = std::variant<int*, double*, bool*, std::string*, std::vector<int>*, std::vector<double>*>;
using Settings = std::map<std::string, Setting>;

struct Wish {
  std::optional<std::string> preset;
  std::vector<std::pair<std::string, std::string>> changes;
};

/// A JSON object as it says what it wants, where it is not written in our names.
using Published = std::optional<Wish> (*)(const nlohmann::json& object);

/// "preset:name=value,name=value", or the name of a .json file of such names, or of what models are published with.
/// Throws Error(usage) that begins with `what`.
Wish read_wish(std::string_view text, Published published, const char* what);

/// Sets what the changes say. Throws Error(usage) for names that are none of `settings`, and values of another kind.
void apply(const Settings& settings, const Wish& wish, const char* what);

}  // namespace modelflow
