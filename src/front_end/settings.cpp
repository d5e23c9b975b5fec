// Presets and changes read, and what they set.
#include "src/front_end/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "modelflow/error.h"
#include "src/core/nearest.h"
#include "src/core/shallow_json.h"

namespace modelflow {
namespace {

struct Refused {
  std::string why;
};

double number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw Refused{fmt::format("'{}' is no number", text)};
  return value;
}

int whole(std::string_view text) {
  const double value = number(text);
  if (!(value >= 0 && value <= 1 << 20 && value == static_cast<int>(value)))
    throw Refused{fmt::format("'{}' is no whole number", text)};
  return static_cast<int>(value);
}

bool flag(std::string_view text) {
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  throw Refused{fmt::format("'{}' is neither true nor false", text)};
}

void assign(int& to, std::string_view text) { to = whole(text); }
void assign(double& to, std::string_view text) { to = number(text); }
void assign(bool& to, std::string_view text) { to = flag(text); }
void assign(std::string& to, std::string_view text) { to = text; }

template <class T>
void assign(std::vector<T>& to, std::string_view text) {
  to.clear();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('/'), text.size());
    assign(to.emplace_back(), text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void set(const Settings& settings, const std::string& name, std::string_view text) {
  const auto setting = settings.find(name);
  if (setting == settings.end()) {
    std::vector<std::string> names;
    for (const auto& each : settings) names.push_back(each.first);
    throw Refused{fmt::format("there is nothing called '{}'{}", name, did_you_mean(name, names))};
  }
  try {
    std::visit([&](auto* to) { assign(*to, text); }, setting->second);
  } catch (const Refused& refused) {
    throw Refused{fmt::format("{}: {}", name, refused.why)};
  }
}

std::string in_words(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> each;
  for (const auto& one : value) each.push_back(in_words(one));
  return fmt::format("{}", fmt::join(each, "/"));
}

nlohmann::json read_object(std::string_view file, const char* what) {
  std::ifstream in{std::string(file)};
  auto json = shallow_json<nlohmann::json>(in);
  if (!json.is_object())
    throw Error(ErrorKind::usage,
                fmt::format("{}: '{}' is no JSON object, or one of more than {} levels", what, file, kMostJsonLevels));
  return json;
}

Wish wish_of(const nlohmann::json& object) {
  Wish wish;
  for (const auto& [key, value] : object.items()) {
    if (key == "preset")
      wish.preset = in_words(value);
    else
      wish.changes.emplace_back(key, in_words(value));
  }
  return wish;
}

}  // namespace

Wish read_wish(std::string_view text, Published published, const char* what) {
  if (text.ends_with(".json")) {
    const nlohmann::json object = read_object(text, what);
    try {
      std::optional<Wish> wish = published(object);
      return wish ? *wish : wish_of(object);
    } catch (const Error& error) {
      throw error.within(fmt::format("{}: '{}'", what, text));
    }
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  Wish wish;
  wish.preset = text.substr(0, colon);
  text.remove_prefix(std::min(colon + 1, text.size()));
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, end);
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos)
      throw Error(ErrorKind::usage, fmt::format("{}: '{}' is no NAME=VALUE", what, one));
    wish.changes.emplace_back(one.substr(0, equals), one.substr(equals + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return wish;
}

void apply(const Settings& settings, const Wish& wish, const char* what) {
  for (const auto& change : wish.changes) try {
      set(settings, change.first, change.second);
    } catch (const Refused& refused) {
      throw Error(ErrorKind::usage, fmt::format("{}: {}", what, refused.why));
    }
}

}  // namespace modelflow
