// Tensors that broadcast to one result, and where the element of each lies that belongs to an element of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace modelflow {

/// Several tensors that broadcast to one result by numpy's rules. Neighbouring axes are merged wherever all of them
/// agree; offsets and strides count elements.
class Broadcast {
 public:
  /// Throws Error(invalid_input) naming `op` when the extents do not broadcast.
  Broadcast(const char* op, const std::vector<std::span<const std::int64_t>>& operands);

  const std::vector<std::int64_t>& dims() const { return dims_; }  ///< of the result
  std::size_t elements() const { return elements_; }
  bool whole(std::size_t operand) const { return kinds_[operand] == Kind::whole; }    ///< has every element of its own
  bool single(std::size_t operand) const { return kinds_[operand] == Kind::single; }  ///< one element for all
  bool repeats(std::size_t operand) const { return strides_[operand].back() == 0; }   ///< along the last merged axis
  /// How many elements of the result there are from this one to the end of that axis.
  std::size_t run(std::size_t element) const {
    return extents_.empty() ? 1 : extents_.back() - element % extents_.back();
  }
  /// Where in the operand the element lies that belongs to this element of the result.
  std::size_t offset(std::size_t operand, std::size_t element) const;
  /// The merged axes, outermost first, and the operand's stride along each, 0 where it repeats.
  const std::vector<std::size_t>& extents() const { return extents_; }
  const std::vector<std::size_t>& strides(std::size_t operand) const { return strides_[operand]; }
  /// Writes the elements that belong to first .. first + n - 1 of the result. T: float or std::uint8_t.
  template <class T>
  void gather(std::size_t operand, const T* from, std::size_t first, std::size_t n, T* to) const;

 private:
  enum class Kind { whole, single, mixed };
  void merge(const std::vector<std::span<const std::int64_t>>& operands);

  std::vector<std::int64_t> dims_;
  std::size_t elements_ = 1;
  std::vector<Kind> kinds_;
  std::vector<std::size_t> extents_;               // merged axes, outermost first
  std::vector<std::vector<std::size_t>> strides_;  // [operand][merged axis], 0 where it repeats
};

}  // namespace modelflow
