// What rules may change besides the last digits, each with its reason.
#pragma once

#include <map>
#include <string>

namespace modelflow::obligations {

/// The reason why a rule or pass among these may turn what is infinite or NaN into another kind of value; empty when
/// none may. Where the original has no such value in an output, nobody may make one.
std::string may_change_kinds(const std::map<std::string, int>& hits);

/// The reason why NaN and infinity may even reach what they do not reach in the original.
std::string may_spread_kinds(const std::map<std::string, int>& hits);

/// The reason why what comes of these rules may refuse tensors without elements; empty when it may not.
std::string may_refuse_empty(const std::map<std::string, int>& hits);

}  // namespace modelflow::obligations
