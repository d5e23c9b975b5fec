// The report as JSON values.
#pragma once

#include <nlohmann/json.hpp>

#include "modelflow/report.h"

namespace modelflow {

using Json = nlohmann::ordered_json;
/// What docs/report.md describes. Strings may hold bytes that are no UTF-8: dump() with error_handler_t::replace.
Json json_of(const Report& report);

/// The page for browsers of such values.
std::string page_of(const Json& report);

}  // namespace modelflow
