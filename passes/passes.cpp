#include "passes/passes.h"

namespace modelflow::passes {

std::vector<Stage> running_order(const Options& options) {
  if (options.level == Level::O0) return {};
  if (options.level == Level::O1) return {clean(options)};
  // normalize makes foldable constants and fuse leaves dead ones, hence clean between and at the end.
  return {clean(options),  normalize(options), clean(options), fuse(options),
          layout(options), select(options),    clean(options)};
}

}  // namespace modelflow::passes
