#include "passes/passes.h"

#include "passes/clean/clean.h"
#include "passes/fuse/fuse.h"
#include "passes/layout/layout.h"
#include "passes/normalize/normalize.h"

namespace modelflow::passes {

Stage clean(const Options&) { return {.name = "clean", .passes = clean(), .repeat = true}; }
Stage normalize(const Options&) { return {.name = "normalize", .passes = normalize(), .repeat = true}; }
Stage fuse(const Options&) { return {.name = "fuse", .passes = fuse()}; }
Stage layout(const Options&) { return {.name = "layout", .passes = layout()}; }

std::vector<Stage> running_order(const Options& options) {
  if (options.level == Level::O0) return {};
  if (options.level == Level::O1) return {clean(options)};
  // normalize makes foldable constants and fuse leaves dead ones, hence clean between and at the end.
  return {clean(options), normalize(options), clean(options), fuse(options), layout(options), clean(options)};
}

}  // namespace modelflow::passes
