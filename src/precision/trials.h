// Forms of a model in lower precision, and what they cost.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "src/measure/timing.h"
#include "src/precision/lower_precision.h"
#include "src/precision/output_errors.h"
#include "src/precision/samples.h"

namespace modelflow {

/// Whether a value is kept in what low precision keeps numbers in: 8 bits, 16 bits.
bool in_low_precision(const Value& value);

/// One choice of precisions, and what comes of it.
struct Trial {
  Model fused;                               ///< before layout
  Model runnable;                            ///< what runtimes load
  std::map<std::string, Precision> lowered;  ///< by fused node: what it computes in; float32 is not listed
  std::vector<OutputError> errors;
  double drop = 0;
  Report report;  ///< what the passes did
};

/// What the precision is lowered of, and with what.
struct Lowering {
  const Precise& precise;
  const Options& options;
  const Pipeline& pipeline;
  Sessions sessions;
  const std::filesystem::path& plugin;
};

/// Makes forms of a model in lower precision and says what they cost.
class Trials {
 public:
  /// `synthetic`: what to evaluate with where there are no samples.
  Trials(const Lowering& work, const std::vector<Feeds>& synthetic);

  /// The model with ops lowered as far as `allowed` says, evaluated on the first `most_samples` samples.
  Trial make(Allowed allowed, std::size_t most_samples = SIZE_MAX);
  /// Judged by the user's own figure, where there is one.
  Trial scored(Trial made);
  /// Whether forms of the model can be timed here.
  bool measurable() const;
  /// Times on the first sample; the first model is the baseline.
  std::vector<Timing> time(const std::vector<const Model*>& models, double seconds) const;
  /// What runtimes load of a fused model.
  Model runnable(const Model& fused) const;

  const Lowering& work;
  SplitSamples samples;
  ReferenceOutputs reference;
  Model base;  ///< float32, what is quantized
  QuantizationPlan plan;

 private:
  double full_score_ = 0;
  bool scored_ = false;
};

}  // namespace modelflow
