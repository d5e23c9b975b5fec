#pragma once

#include <string>
#include <vector>

#include "modelflow/modelflow.h"

namespace modelflow {

/// Compares one output of two models over any number of samples.
class ErrorMeter {
 public:
  explicit ErrorMeter(std::string output) : output_(std::move(output)) {}
  /// A result that is no tensor of numbers, or of another type or shape than the reference, counts as a total loss.
  void add(const Tensor& reference, const Tensor& result);
  OutputError error() const;

 private:
  void add_rows(const Tensor& reference, const std::vector<double>& a, const std::vector<double>& b);

  std::string output_;
  double squares_a_ = 0, squares_b_ = 0, products_ = 0, squared_error_ = 0;
  std::size_t rows_ = 0, agreeing_ = 0;
  bool lost_ = false;
};

/// Per cent of the metric that this output has lost, 0 to 100.
double drop(const OutputError& error, Metric metric);
/// That of the worst output; 0 when there is none.
double drop(const std::vector<OutputError>& errors, Metric metric);

}  // namespace modelflow
