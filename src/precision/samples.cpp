// Calibration samples checked, counted, and split in two.
#include "src/precision/samples.h"

namespace modelflow {
namespace {

constexpr std::size_t kEvery = 4;
constexpr std::size_t kMostForEvaluation = 32;  // each is run by every candidate

std::string describe(DType dtype, const std::string& shape) { return std::string(name(dtype)) + " " + shape; }

bool fits(const Type& type, const Tensor& tensor) {
  if (!type.is_tensor()) return true;
  if (type.dtype != DType::undefined && type.dtype != tensor.dtype()) return false;
  if (!type.shape.has_rank()) return true;
  if (type.shape.rank() != tensor.rank()) return false;
  for (std::size_t axis = 0; axis < tensor.rank(); ++axis)
    if (const auto extent = type.shape[axis].number(); extent && *extent != tensor.dims()[axis]) return false;
  return true;
}

std::string names_of(const Feeds& sample) {
  std::string list;
  for (const auto& [name, tensor] : sample) list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

void check(const Model& model, const Feeds& sample) {
  for (const Value* input : model.graph().inputs()) {
    const auto given = sample.find(input->name());
    if (given == sample.end()) {
      if (input->is_initializer()) continue;  // has a default
      throw Error(ErrorKind::usage, "input '" + input->name() + "' of the model is missing; there " +
                                        (sample.empty() ? "is nothing" : "is " + names_of(sample)));
    }
    if (!fits(input->type, given->second))
      throw Error(ErrorKind::usage, "input '" + input->name() + "' is " +
                                        describe(given->second.dtype(), Shape::of(given->second.dims()).str()) +
                                        ", the model takes " + describe(input->dtype(), input->shape().str()));
  }
}

void check(const Model& model, const Feeds& sample, std::size_t index) {
  try {
    check(model, sample);
  } catch (const Error& error) {
    throw error.within("calibration sample " + std::to_string(index));
  }
}

}  // namespace

CalibrationData checked_samples(const Model& model, CalibrationData data) {
  return [&model, data = std::move(data)](std::size_t index) {
    std::optional<Feeds> sample = data(index);
    if (sample) check(model, *sample, index);
    return sample;
  };
}

std::optional<Feeds> calibration_sample(const Model& model, const Options& options, std::size_t index) {
  if (!options.calibration)
    throw Error(ErrorKind::usage,
                "int8 needs calibration data (--calibration): some hundred typical inputs; int8-dynamic "
                "needs none");
  std::optional<Feeds> sample = options.calibration(index);
  if (!sample && index == 0) throw Error(ErrorKind::usage, "there are no calibration samples");
  if (sample) check(model, *sample, index);
  return sample;
}

SplitSamples::SplitSamples(const Options& options, const std::vector<Feeds>& otherwise) : all_(options.calibration) {
  if (!all_) {
    evaluation_ = otherwise;
    return;
  }
  for (std::size_t i = kEvery - 1; evaluation_.size() < kMostForEvaluation; i += kEvery) {
    std::optional<Feeds> feeds = all_(i);
    if (!feeds) break;
    evaluation_.push_back(std::move(*feeds));
  }
  held_out_ = !evaluation_.empty();
  for (std::size_t i = 0; !held_out_ && i + 1 < kEvery; ++i)
    if (std::optional<Feeds> feeds = all_(i)) evaluation_.push_back(std::move(*feeds));
  if (evaluation_.empty()) throw Error(ErrorKind::usage, "there is not one sample to calibrate with");
}

CalibrationData SplitSamples::calibration() const {
  if (!held_out_) return all_;
  return [all = all_](std::size_t i) { return all(i + i / (kEvery - 1)); };
}

}  // namespace modelflow
