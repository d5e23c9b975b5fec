// The transposition of a constant, and which Transpose swaps two axes.
#include "passes/graph/transposed.h"

#include <algorithm>
#include <cstring>

namespace modelflow::passes {
namespace {

using Sizes = std::vector<std::size_t>;

/// Two axes that change places: elements that lie side by side in the source stand `apart` bytes apart in the result,
/// and those that stand `step` bytes apart in the source lie side by side there.
struct Plane {
  std::size_t columns, apart;  ///< along the source's last axis
  std::size_t rows, step;      ///< along the result's last axis
};

/// In tiles that are read and written a line of cache at a time: rows are often a power of two apart, so that lines
/// which are filled bit by bit would drive each other out.
template <class Width>
void turn(const std::byte* from, std::byte* to, const Plane& plane, Width width) {
  constexpr std::size_t kLine = 64;
  const std::size_t most = std::max<std::size_t>(kLine / width, 1);
  std::byte tile[kLine * kLine], line[kLine];
  for (std::size_t row = 0; row < plane.rows; row += most) {
    const std::size_t rows = std::min(most, plane.rows - row);
    for (std::size_t column = 0; column < plane.columns; column += most) {
      const std::size_t columns = std::min(most, plane.columns - column);
      for (std::size_t r = 0; r < rows; ++r)
        std::memcpy(&tile[r * most * width], from + (row + r) * plane.step + column * width, columns * width);
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t r = 0; r < rows; ++r) std::memcpy(&line[r * width], &tile[(r * most + c) * width], width);
        std::memcpy(to + (column + c) * plane.apart + row * width, line, rows * width);
      }
    }
  }
}

template <std::size_t kBytes>
using Bytes = std::integral_constant<std::size_t, kBytes>;

void turn_elements(const std::byte* from, std::byte* to, const Plane& plane, std::size_t width) {
  switch (width) {
    case 1:
      return turn(from, to, plane, Bytes<1>());
    case 2:
      return turn(from, to, plane, Bytes<2>());
    case 4:
      return turn(from, to, plane, Bytes<4>());
    case 8:
      return turn(from, to, plane, Bytes<8>());
    default:
      return turn(from, to, plane, width);
  }
}

/// Bytes from element to element along each axis.
Sizes strides_of(const Dims& dims, std::size_t width) {
  Sizes strides(dims.size(), width);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * static_cast<std::size_t>(dims[i]);
  return strides;
}

}  // namespace

Tensor transposed(const Tensor& source, const Ints& perm) {
  const std::size_t rank = perm.size(), width = static_cast<std::size_t>(bits(source.dtype())) / 8, last = rank - 1;
  const Sizes strides = strides_of(source.dims(), width);
  Dims dims(rank);
  Sizes step(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = source.dims()[static_cast<std::size_t>(perm[i])];
    step[i] = strides[static_cast<std::size_t>(perm[i])];
  }
  const Sizes apart = strides_of(dims, width);
  const auto extent = [&](std::size_t axis) { return static_cast<std::size_t>(dims[axis]); };
  // The axis of the result that is the source's last one; elements there are copied as one where it stays the last.
  const auto column = static_cast<std::size_t>(std::ranges::find(perm, static_cast<std::int64_t>(last)) - perm.begin());
  const Plane plane{column == last ? 1 : extent(column), apart[column], extent(last), step[last]};
  return Tensor::make(source.dtype(), dims, [&](std::byte* out) {
    Sizes at(rank, 0);
    std::size_t from = 0, to = 0;
    for (std::size_t left = static_cast<std::size_t>(source.elements()); left > 0; left -= plane.rows * plane.columns) {
      if (column == last)
        std::memcpy(out + to, source.data() + from, plane.rows * width);
      else
        turn_elements(source.data() + from, out + to, plane, width);
      for (std::size_t axis = last; axis-- > 0;) {  // odometer over the other axes
        if (axis == column) continue;
        from += step[axis], to += apart[axis];
        if (++at[axis] < extent(axis)) break;
        from -= step[axis] * at[axis], to -= apart[axis] * at[axis];
        at[axis] = 0;
      }
    }
  });
}

Ints longer_axes(const Ints& perm, const Shape& x) {
  Ints longer;
  for (const std::int64_t axis : perm)
    if (!(x[static_cast<std::size_t>(axis)].number() == 1)) longer.push_back(axis);
  return longer;
}

bool swaps_last_two(const Node& node) {
  if (!node.is("Transpose")) return false;
  const Ints perm = node.attrs.ints("perm");
  const auto rank = static_cast<std::int64_t>(perm.size());
  if (rank == 0) return node.input(0)->shape().has_rank() && node.input(0)->shape().rank() == 2;
  if (rank < 2) return false;
  for (std::int64_t i = 0; i + 2 < rank; ++i) {
    if (perm[static_cast<std::size_t>(i)] != i) return false;
  }
  return perm[perm.size() - 1] == rank - 2 && perm[perm.size() - 2] == rank - 1;
}

}  // namespace modelflow::passes
