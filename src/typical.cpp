// The extents of the given inputs, of those that ran, or made up.
#include "src/typical.h"

#include "src/verify/feeds.h"

namespace modelflow {
namespace {

std::map<std::string, Dims> extents_of(const Feeds& feeds) {
  std::map<std::string, Dims> extents;
  for (const auto& [input, tensor] : feeds) extents[input] = tensor.dims();
  return extents;
}

}  // namespace

std::map<std::string, Dims> typical_extents(const Model& original, const Options& options, const Reference& reference) {
  if (!options.inputs.empty()) return extents_of(options.inputs.front());
  if (!reference.feeds.empty()) return extents_of(reference.feeds.front().values);
  if (options.calibration)
    if (const std::optional<Feeds> first = options.calibration(0)) return extents_of(*first);
  try {
    return input_dims(original, typical_idea(original).extents.front(), options.input_shapes);
  } catch (const Error&) {  // an input that is no tensor
    return options.input_shapes;
  }
}

}  // namespace modelflow
