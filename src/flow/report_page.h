// The page for browsers, in two parts between which the report stands.
#pragma once

#include <string_view>

namespace modelflow {

/// src/page, joined by the build.
extern const std::string_view kPageHead, kPageTail;

}  // namespace modelflow
