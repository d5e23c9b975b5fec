#include "passes/normalize/normalize.h"

#include "passes/passes.h"

namespace modelflow::passes {

std::vector<Pass> normalize() { return {normalize_activations(), normalize_linear()}; }

Stage normalize(const Options&) { return {.name = "normalize", .passes = normalize(), .repeat = true}; }

}  // namespace modelflow::passes
