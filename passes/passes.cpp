#include "passes/passes.h"

#include "passes/clean/clean.h"
#include "passes/equalize/equalize.h"
#include "passes/fuse/fuse.h"
#include "passes/layout/layout.h"
#include "passes/normalize/normalize.h"
#include "passes/quantize/quantize.h"

namespace modelflow::passes {

Stage clean(const Options&) { return {.name = "clean", .passes = clean(), .repeat = true}; }
Stage normalize(const Options&) { return {.name = "normalize", .passes = normalize(), .repeat = true}; }
Stage fuse(const Options&) { return {.name = "fuse", .passes = fuse()}; }
Stage equalize(const Options& options) { return {.name = "equalize", .passes = equalizing(options)}; }
Stage quantize(const Options& options) { return {.name = "quantize", .passes = quantizing(options)}; }
Stage layout(const Options& options) {
  Stage stage{.name = "layout", .passes = layout()};
  if (options.precision == Precision::bf16 || mixes_bf16(options)) stage.passes.push_back(bf16_values());
  return stage;
}

std::vector<Stage> running_order(const Options& options) {
  if (options.level == Level::O0) return {};
  if (options.level == Level::O1 && options.precision == Precision::f32) return {clean(options)};
  // normalize makes foldable constants and fuse leaves dead ones, hence clean between and at the end.
  std::vector<Stage> order = {clean(options), normalize(options), clean(options),
                              fuse(options),  equalize(options),  quantize(options)};
  // The portable form in lower precision is the same with the bodies written out, which have no use for a layout.
  if (options.level == Level::O2) order.push_back(layout(options));
  order.push_back(clean(options));
  return order;
}

}  // namespace modelflow::passes
