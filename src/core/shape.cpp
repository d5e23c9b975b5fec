// Shapes: numbers, elements, text.
#include "modelflow/shape.h"

#include "modelflow/error.h"

namespace modelflow {

std::size_t Shape::rank() const { return dims().size(); }

const std::vector<Dim>& Shape::dims() const {
  if (!dims_) throw Error(ErrorKind::internal, "the dims of a shape of unknown rank were read");
  return *dims_;
}

bool Shape::known() const {
  if (!dims_) return false;
  for (const Dim& dim : *dims_) {
    if (!dim.known()) return false;
  }
  return true;
}

std::vector<std::int64_t> Shape::values() const {
  std::vector<std::int64_t> values;
  for (const Dim& dim : dims()) values.push_back(dim.value());
  return values;
}

double Shape::known_elements() const {
  double product = 1;
  if (!has_rank()) return product;
  for (const Dim& dim : dims()) product *= static_cast<double>(dim.number().value_or(1));
  return product;
}

Dim Shape::elements() const {
  if (!dims_) return {};
  Dim product = 1;
  for (const Dim& dim : *dims_) product = product * dim;
  return product;
}

std::string Shape::str() const {
  if (!dims_) return "[...]";
  std::string text = "[";
  for (std::size_t i = 0; i < dims_->size(); ++i) text += (i ? "," : "") + (*dims_)[i].str();
  return text + "]";
}

bool Shape::operator==(const Shape& other) const { return dims_ && other.dims_ && *dims_ == *other.dims_; }

}  // namespace modelflow
