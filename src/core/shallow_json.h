// JSON from outside, in so few levels that what recurses over it needs little stack.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

namespace modelflow {

/// More than configurations and reports have; each level is a call of its own where a value is written or read.
inline constexpr int kMostJsonLevels = 64;

/// What a stream or a text says. Discarded (`is_discarded()`, so no object) where it is no JSON, or is nested deeper.
template <class Json, class Input>
Json shallow_json(Input&& input) {
  bool too_deep = false;
  const auto keeps = [&](int depth, typename Json::parse_event_t /*event*/, Json& /*parsed*/) {
    too_deep = too_deep || depth > kMostJsonLevels;
    return !too_deep;
  };
  Json json = Json::parse(std::forward<Input>(input), keeps, /*allow_exceptions=*/false);
  return too_deep ? Json(Json::value_t::discarded) : json;
}

}  // namespace modelflow
