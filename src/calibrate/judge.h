#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "modelflow/runtime.h"

namespace modelflow {

/// Says of other forms of a model how far their outputs are from its own.
class Judge {
 public:
  /// Runs `original` on the samples, which have to outlive this, as has the runtime.
  Judge(Runtime& runtime, const Model& original, const std::vector<Feeds>& samples, int threads);

  /// Of each output of `runnable` (functions emitted), with the plugin or without one, over the first `most` samples.
  std::vector<OutputError> errors(const Model& runnable, const std::filesystem::path& plugin,
                                  std::size_t most = SIZE_MAX) const;

 private:
  using Outputs = std::vector<std::vector<Tensor>>;  // [sample][output]
  Outputs outputs_of(const Model& model, const std::filesystem::path& plugin, std::size_t most) const;

  Runtime& runtime_;
  const std::vector<Feeds>& samples_;
  int threads_;
  std::vector<std::string> names_;
  Outputs reference_;
};

}  // namespace modelflow
