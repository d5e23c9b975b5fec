// Outputs of a model in lower precision compared with the original's, over samples.
#include "src/precision/output_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/verify/compare.h"

namespace modelflow {

void ErrorMeter::add(const Tensor& reference, const Tensor& result) {
  if (reference.dtype() == DType::undefined && result.dtype() == DType::undefined) return;
  if (reference.dtype() != result.dtype() || reference.dims() != result.dims()) {
    lost_ = true;
    return;
  }
  if (reference.dtype() == DType::string || reference.dtype() == DType::c64 || reference.dtype() == DType::c128) {
    lost_ = lost_ || !reference.same_content(result);
    return;
  }
  most_elements_ = std::max(most_elements_, reference.elements());
  const std::vector<double> a = reference.to_doubles(), b = result.to_doubles();
  if (!is_float(reference.dtype()) && (bits(reference.dtype()) > 8 || reference.dtype() == DType::boolean)) {
    whole_ += a.size();
    for (std::size_t i = 0; i < a.size(); ++i) equal_ += a[i] == b[i] ? 1 : 0;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] && !std::isfinite(a[i])) continue;  // the same infinity
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      lost_ = true;
      continue;
    }
    squares_a_ += a[i] * a[i];
    squares_b_ += b[i] * b[i];
    products_ += a[i] * b[i];
    squared_error_ += (a[i] - b[i]) * (a[i] - b[i]);
  }
  add_rows(reference, a, b);
}

void ErrorMeter::add_rows(const Tensor& reference, const std::vector<double>& a, const std::vector<double>& b) {
  if (reference.rank() < 2 || reference.dims().back() < 2 || !is_float(reference.dtype())) return;
  const auto width = reference.dims().back();
  const auto top = [&](const std::vector<double>& values, std::size_t row) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row) * width;
    return std::max_element(begin, begin + width) - begin;
  };
  const std::size_t rows = a.size() / static_cast<std::size_t>(width);
  for (std::size_t row = 0; row < rows; ++row) agreeing_ += top(a, row) == top(b, row) ? 1 : 0;
  rows_ += rows;
}

OutputError ErrorMeter::error() const {
  OutputError error{.output = output_, .relative_l2 = 0, .sqnr = {}, .cosine = 1, .top1 = {}};
  if (rows_ > 0) error.top1 = static_cast<double>(agreeing_) / static_cast<double>(rows_);
  if (lost_) {
    error.relative_l2 = std::numeric_limits<double>::infinity();
    error.sqnr = -std::numeric_limits<double>::infinity();
    error.cosine = 0;
    if (error.top1) error.top1 = 0;
  } else if (squared_error_ > 0) {
    error.relative_l2 = std::sqrt(squared_error_ / squares_a_);
    error.sqnr = -20 * std::log10(error.relative_l2);
    // Of a reference that is 0 throughout nothing is left.
    const double lengths = std::sqrt(squares_a_) * std::sqrt(squares_b_);
    error.cosine = lengths > 0 ? std::min(products_ / lengths, 1.0) : 0;  // NaN stays
    // One number has no direction: what the cosine of many would be that are off by as much.
    if (most_elements_ == 1) error.cosine = std::min(error.cosine, 1 - error.relative_l2 * error.relative_l2 / 2);
    if (whole_ > 0) {
      const double unequal = 1 - static_cast<double>(equal_) / static_cast<double>(whole_);
      error.top1 = 1 - unequal;
      error.cosine = 1 - unequal;
      error.relative_l2 = std::max(error.relative_l2, unequal);
    }
  }
  return error;
}

double drop(const OutputError& error, Metric metric) {
  double lost = 1 - error.cosine;
  if (metric == Metric::l2) lost = error.relative_l2;
  if (metric == Metric::top1 && error.top1) lost = 1 - *error.top1;
  return std::isnan(lost) ? 100 : std::clamp(100 * lost, 0.0, 100.0);
}

double drop(const std::vector<OutputError>& errors, Metric metric) {
  double worst = 0;
  for (const OutputError& error : errors) worst = std::max(worst, drop(error, metric));
  return worst;
}

namespace {

/// Something to compare: a finite number, or a text.
bool has_number(const Tensor& tensor) {
  if (tensor.dtype() == DType::undefined || tensor.elements() == 0) return false;
  const bool counts = tensor.dtype() == DType::string || tensor.dtype() == DType::c64 || tensor.dtype() == DType::c128;
  return counts || std::ranges::any_of(tensor.to_doubles(), [](double x) { return std::isfinite(x); });
}

}  // namespace

ReferenceOutputs::ReferenceOutputs(const Sessions& sessions, const Model& original, const std::vector<Feeds>& samples,
                                   int threads)
    : sessions_(sessions), samples_(samples), threads_(threads) {
  for (const Value* output : original.graph().outputs()) names_.push_back(output->name());
  reference_ = outputs_of(original, "", samples.size());
}

bool ReferenceOutputs::has_numbers() const {
  const auto any = [](const std::vector<Tensor>& outputs) { return std::ranges::any_of(outputs, has_number); };
  return reference_.empty() || std::ranges::any_of(reference_, any);
}

ReferenceOutputs::Outputs ReferenceOutputs::outputs_of(const Model& model, const std::filesystem::path& plugin,
                                                       std::size_t most, bool optimize) const {
  const auto session = open_session(sessions_, model, {.threads = threads_, .optimize = optimize, .plugin = plugin});
  Outputs outputs;
  for (std::size_t i = 0; i < std::min(most, samples_.size()); ++i) outputs.push_back(session->run(samples_[i]));
  return outputs;
}

std::vector<OutputError> ReferenceOutputs::errors_of(const Model& runnable, const std::filesystem::path& plugin,
                                                     std::size_t most, bool optimize) const {
  const Outputs got = outputs_of(runnable, plugin, most, optimize);
  std::vector<OutputError> errors;
  if (got.empty()) return errors;
  for (std::size_t k = 0; k < names_.size(); ++k) {
    ErrorMeter meter(names_[k]);
    for (std::size_t i = 0; i < got.size(); ++i) meter.add(reference_[i][k], got[i][k]);
    errors.push_back(meter.error());
  }
  return errors;
}

}  // namespace modelflow
