// Broadcasting: neighbouring axes are merged where all operands agree, and elements are gathered along them.
#include "backends/broadcast.h"

#include <algorithm>
#include <string>

#include "modelflow/error.h"

namespace modelflow {
namespace {

/// The extent of an operand under an axis of the result: 1 for axes that it does not have.
std::int64_t extent(std::span<const std::int64_t> operand, std::size_t axis, std::size_t rank) {
  const std::size_t missing = rank - operand.size();
  return axis < missing ? 1 : operand[axis - missing];
}

}  // namespace

Broadcast::Broadcast(const char* op, const std::vector<std::span<const std::int64_t>>& operands) {
  std::size_t rank = 0;
  for (const auto& operand : operands) rank = std::max(rank, operand.size());
  dims_.assign(rank, 1);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    for (const auto& operand : operands) {
      const std::int64_t here = extent(operand, axis, rank);
      if (here == 1 || here == dims_[axis]) continue;
      if (dims_[axis] != 1) {
        throw Error(ErrorKind::invalid_input, std::string(op) + ": extents " + std::to_string(dims_[axis]) + " and " +
                                                  std::to_string(here) + " do not broadcast");
      }
      dims_[axis] = here;
    }
    elements_ *= static_cast<std::size_t>(dims_[axis]);
  }
  merge(operands);
}

void Broadcast::merge(const std::vector<std::span<const std::int64_t>>& operands) {
  const std::size_t count = operands.size(), rank = dims_.size();
  std::vector<std::vector<bool>> repeats;  // [merged axis][operand]
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (dims_[axis] == 1) continue;
    std::vector<bool> here(count);
    for (std::size_t i = 0; i < count; ++i) here[i] = extent(operands[i], axis, rank) == 1;
    if (!repeats.empty() && repeats.back() == here) {
      extents_.back() *= static_cast<std::size_t>(dims_[axis]);
    } else {
      repeats.push_back(here);
      extents_.push_back(static_cast<std::size_t>(dims_[axis]));
    }
  }
  strides_.assign(count, std::vector<std::size_t>(extents_.size()));
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t stride = 1, repeated = 0;
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      repeated += repeats[axis][i];
      if (repeats[axis][i]) continue;
      strides_[i][axis] = stride;
      stride *= extents_[axis];
    }
    kinds_.push_back(repeated == 0 ? Kind::whole : repeated == extents_.size() ? Kind::single : Kind::mixed);
  }
}

std::size_t Broadcast::offset(std::size_t operand, std::size_t element) const {
  std::size_t offset = 0;
  for (std::size_t axis = extents_.size(); axis-- > 0; element /= extents_[axis])
    offset += element % extents_[axis] * strides_[operand][axis];
  return offset;
}

template <class T>
void Broadcast::gather(std::size_t operand, const T* from, std::size_t first, std::size_t n, T* to) const {
  while (n > 0) {
    const T* const at = from + offset(operand, first);
    const std::size_t count = std::min(n, run(first));
    if (repeats(operand)) {
      std::fill_n(to, count, *at);
    } else {
      std::copy_n(at, count, to);
    }
    first += count;
    to += count;
    n -= count;
  }
}

template void Broadcast::gather(std::size_t, const float*, std::size_t, std::size_t, float*) const;
template void Broadcast::gather(std::size_t, const std::uint8_t*, std::size_t, std::size_t, std::uint8_t*) const;

}  // namespace modelflow
