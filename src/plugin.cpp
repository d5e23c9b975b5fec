// The plugin, for targets whose kernels run here.
#include "src/plugin.h"

#include "modelflow/runtime.h"

namespace modelflow {

std::filesystem::path plugin_for(const Target& target) {
  return target.device == Device::cpu ? plugin_path() : std::filesystem::path();
}

}  // namespace modelflow
