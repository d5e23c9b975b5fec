// The text form, of models and of functions.
#include <string_view>

#include "modelflow/model.h"
#include "src/text/parse.h"
#include "tests/fuzz_targets/expected.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {

void read_text(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  taken([&] { (void)Model::from_text(text).to_text(); });
  taken([&] { (void)parse_function(text); });
}

}  // namespace modelflow::fuzz
