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

/// Each element `row` times, but the first one only until its row ends.
template <class T>
void spread(const T* from, std::size_t left, std::size_t row, std::size_t step, std::size_t n, T* to) {
  for (; n > 0; from += step, left = row) {
    const std::size_t count = std::min(n, left);
    to = std::fill_n(to, count, *from);
    n -= count;
  }
}

/// The same row again and again, from `begin` on: what is written is copied behind itself, twice as much each time.
template <class T>
void repeat(const T* from, std::size_t begin, std::size_t row, std::size_t n, T* to) {
  const std::size_t head = std::min(n, row - begin), tail = std::min(n - head, begin);
  std::copy_n(from, tail, std::copy_n(from + begin, head, to));
  for (std::size_t done = head + tail; done < n; done += std::min(done, n - done))
    std::copy_n(to, std::min(done, n - done), to + done);
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
  const std::size_t rank = extents_.size(), row = extents_.empty() ? 1 : extents_.back();
  const std::size_t rows = rank < 2 ? 1 : extents_[rank - 2];
  const std::size_t step = rank < 2 ? 0 : strides_[operand][rank - 2];
  while (n > 0) {
    const std::size_t group = std::min(n, rows * row - first % (rows * row));  // until the axis before the last ends
    const T* at = from + offset(operand, first);
    if (repeats(operand))
      spread(at, run(first), row, step, group, to);
    else if (step == 0)
      repeat(from + offset(operand, first - first % row), first % row, row, group, to);
    else
      std::copy_n(at, group, to);
    first += group;
    to += group;
    n -= group;
  }
}

template void Broadcast::gather(std::size_t, const float*, std::size_t, std::size_t, float*) const;
template void Broadcast::gather(std::size_t, const std::uint8_t*, std::size_t, std::size_t, std::uint8_t*) const;

}  // namespace modelflow
