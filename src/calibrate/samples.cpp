#include "src/calibrate/samples.h"

namespace modelflow {
namespace {

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

}  // namespace modelflow
