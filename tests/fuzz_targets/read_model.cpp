// A ModelProto of any bytes. What was read once is written, and that reads and writes as itself.
#include "modelflow/model.h"
#include "tests/fuzz_targets/expected.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {
namespace {

constexpr Limits kSmall = {.max_nodes = 10'000, .max_depth = 50};

std::string rewritten(std::span<const std::byte> bytes) { return Model::from_bytes(bytes, {}, kSmall).to_bytes(); }

}  // namespace

void read_model(Bytes bytes) {
  std::string once;
  if (!taken([&] { once = rewritten(std::as_bytes(bytes)); })) return;
  std::string twice;
  const bool again = taken([&] { twice = rewritten(std::as_bytes(std::span(once))); });
  holds(again, "what was written is not read");
  holds(once == twice, "what was written comes out as something else");
}

}  // namespace modelflow::fuzz
