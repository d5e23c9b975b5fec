// Cases of an op: of each of its domains every pair of choices of two axes that may stand together, then at random
// until every kernel has had its share.
#pragma once

#include <functional>

#include "tests/domains/domain.h"

namespace modelflow::domains {

/// A choice of every axis of a domain, by index, and what the numbers are drawn from.
struct Case {
  const Domain* domain = nullptr;
  std::vector<std::size_t> choices;
  std::uint64_t seed = 0;
};

/// What this case says, the call inferred; nothing where its choices contradict each other.
std::unique_ptr<Operands> made(const Case& which);
std::string describe(const Case& which);

struct Plan {
  std::size_t least = 250;      ///< cases of the first domain
  std::size_t per_kernel = 16;  ///< cases that each kernel of the op accepts
  std::uint64_t seed = 1;
};
/// Of an op that has domains.
std::vector<Case> cases(std::string_view op, const Plan& plan);

/// A number from the environment: how many cases, another seed.
std::uint64_t setting(const char* name, std::uint64_t otherwise);

}  // namespace modelflow::domains
