#include "src/calibrate/judge.h"

#include <algorithm>

#include "src/calibrate/metric.h"
#include "src/verify/compare.h"

namespace modelflow {

Judge::Judge(Runtime& runtime, const Model& original, const std::vector<Feeds>& samples, int threads)
    : runtime_(runtime), samples_(samples), threads_(threads) {
  for (const Value* output : original.graph().outputs()) names_.push_back(output->name());
  reference_ = outputs_of(original, "", samples.size());
}

Judge::Outputs Judge::outputs_of(const Model& model, const std::filesystem::path& plugin, std::size_t most) const {
  const auto session = open_session(runtime_, model, {.threads = threads_, .plugin = plugin});
  Outputs outputs;
  for (std::size_t i = 0; i < std::min(most, samples_.size()); ++i) outputs.push_back(session->run(samples_[i]));
  return outputs;
}

std::vector<OutputError> Judge::errors(const Model& runnable, const std::filesystem::path& plugin,
                                       std::size_t most) const {
  const Outputs got = outputs_of(runnable, plugin, most);
  std::vector<OutputError> errors;
  for (std::size_t k = 0; k < names_.size(); ++k) {
    ErrorMeter meter(names_[k]);
    for (std::size_t i = 0; i < got.size(); ++i) meter.add(reference_[i][k], got[i][k]);
    errors.push_back(meter.error());
  }
  return errors;
}

}  // namespace modelflow
