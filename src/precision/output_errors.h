// The error of each output, in the metrics that a bound is given in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "modelflow/model.h"
#include "modelflow/modelflow.h"
#include "src/verify/session.h"

namespace modelflow {

/// Compares one output of two models over any number of samples.
class ErrorMeter {
 public:
  explicit ErrorMeter(std::string output) : output_(std::move(output)) {}
  /// A result that is no tensor of numbers, or of another type or shape than the reference, counts as a total loss. Of
  /// integers above 8 bits and booleans (labels, places, masks) what counts is how many are equal.
  void add(const Tensor& reference, const Tensor& result);
  OutputError error() const;

 private:
  void add_rows(const Tensor& reference, const std::vector<double>& a, const std::vector<double>& b);

  std::string output_;
  double squares_a_ = 0, squares_b_ = 0, products_ = 0, squared_error_ = 0;
  std::size_t rows_ = 0, agreeing_ = 0, whole_ = 0, equal_ = 0;
  std::int64_t most_elements_ = 0;
  bool lost_ = false;
};

/// Per cent of the metric that this output has lost, 0 to 100.
double drop(const OutputError& error, Metric metric);
/// The loss of the worst output; 0 when there is none.
double drop(const std::vector<OutputError>& errors, Metric metric);

/// What a model makes of samples, and how far the outputs of its other forms are from that.
class ReferenceOutputs {
 public:
  /// Runs `original` on the samples, which have to outlive this, as has the runtime.
  ReferenceOutputs(const Sessions& sessions, const Model& original, const std::vector<Feeds>& samples, int threads);
  /// Whether the original gives a finite number, or a text, for any of them, where there are any: else nothing would
  /// count as equal.
  bool has_numbers() const;

  /// The errors of the outputs of `runnable` (functions emitted), with or without the plugin, over the first `most`
  /// samples; none where there are no samples. `optimize`: as ONNX Runtime makes it faster.
  std::vector<OutputError> errors_of(const Model& runnable, const std::filesystem::path& plugin,
                                     std::size_t most = SIZE_MAX, bool optimize = true) const;

 private:
  using Outputs = std::vector<std::vector<Tensor>>;  // [sample][output]
  Outputs outputs_of(const Model& model, const std::filesystem::path& plugin, std::size_t most,
                     bool optimize = true) const;

  Sessions sessions_;
  const std::vector<Feeds>& samples_;
  int threads_;
  std::vector<std::string> names_;
  Outputs reference_;
};

}  // namespace modelflow
