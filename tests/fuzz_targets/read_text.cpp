// The text form of models, functions included.
#include <string_view>

#include "modelflow/model.h"
#include "tests/fuzz_targets/expected.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {

void read_text(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  taken([&] { (void)Model::from_text(text).to_text(); });
}

}  // namespace modelflow::fuzz
