// How far results are apart.
#include "tests/obligations/difference.h"

#include <algorithm>
#include <cmath>

#include "modelflow/shape.h"

namespace modelflow::obligations {
namespace {

std::string shown(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return std::to_string(value);
}

std::string shown(const Tensor& tensor) { return std::string(name(tensor.dtype())) + Shape::of(tensor.dims()).str(); }

std::vector<double> numbers(const Tensor& tensor) {
  if (tensor.dtype() != DType::c64 && tensor.dtype() != DType::c128) return tensor.to_doubles();
  const bool wide = tensor.dtype() == DType::c128;
  std::vector<double> parts(static_cast<std::size_t>(2 * tensor.elements()));
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = wide ? reinterpret_cast<const double*>(tensor.data())[i]
                    : static_cast<double>(reinterpret_cast<const float*>(tensor.data())[i]);
  return parts;
}

}  // namespace

Distance distance(const Tensor& reference, const Tensor& result) {
  Distance found;
  if (reference.dtype() != result.dtype() || reference.dims() != result.dims()) {
    found.other_shape = shown(result) + " instead of " + shown(reference);
    return found;
  }
  if (reference.dtype() == DType::undefined) return found;
  if (reference.dtype() == DType::string) {
    if (reference.strings() != result.strings()) found.other_shape = "other strings";
    return found;
  }
  const bool exact = reference.dtype() == DType::i64 || reference.dtype() == DType::u64;
  if (exact && !reference.same_content(result)) found.largest = 1;  // doubles do not hold all of them
  const std::vector<double> a = numbers(reference), b = numbers(result);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]))
      found.scale = std::max(found.scale, std::abs(a[i]));
    else
      found.finite = false;
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (std::isfinite(a[i]) && std::isfinite(b[i]))
      found.largest = std::max(found.largest, std::abs(a[i] - b[i]));
    else if (found.other_kind.empty())
      found.other_kind =
          shown(b[i]) + " where the original has " + shown(a[i]) + " (element " + std::to_string(i) + ")";
  }
  return found;
}

}  // namespace modelflow::obligations
