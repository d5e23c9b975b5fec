// The stage finish, in running order: what is left when nothing changes any more.
#include "passes/finish/finish.h"

#include "passes/passes.h"

namespace modelflow::passes {

Stage finish(const Options&) {
  return {.name = "finish",
          .passes = {
              fuse_transposes(),  // those that ONNX Runtime is slow at
          }};
}

}  // namespace modelflow::passes
