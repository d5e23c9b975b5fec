// Reads the attribute `residual`.
#include "backends/ops/residual.h"

#include "backends/ops/words.h"

namespace modelflow::ops {

Residual residual_of(const CallAttrs& attrs) {
  const std::string said = word(attrs, "residual", {"none", "before", "after", "times"});
  if (said == "none") return Residual::none;
  return said == "before" ? Residual::before : said == "after" ? Residual::after : Residual::times;
}

}  // namespace modelflow::ops
