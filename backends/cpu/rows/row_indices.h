// Which rows of a table int32 or int64 numbers name, counted from the end where they are negative.
#pragma once

#include <string>

#include "modelflow/kernel.h"

namespace modelflow::cpu {

class RowIndices {
 public:
  RowIndices() = default;
  /// All of them or, with a step, every one so far behind the one before, from the number `first` on.
  RowIndices(const View& numbers, std::int64_t rows, std::int64_t first = 0, std::int64_t step = 1)
      : numbers_(numbers), rows_(rows), first_(first), step_(step) {}

  std::int64_t count() const { return element_count(numbers_.dims); }
  bool whole() const { return numbers_.dtype == DType::i64 || numbers_.dtype == DType::i32; }

  std::int64_t operator[](std::int64_t i) const {
    const std::int64_t row = number(i);
    return row < 0 ? row + rows_ : row;
  }

  /// What is wrong with the first `count` of them; empty: nothing. To be asked once, before other threads read them.
  std::string wrong(std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i)
      if (const std::int64_t row = (*this)[i]; row < 0 || row >= rows_)
        return std::to_string(number(i)) + " names none of " + std::to_string(rows_) + " rows";
    return {};
  }

 private:
  std::int64_t number(std::int64_t i) const {
    const std::int64_t at = first_ + i * step_;
    return numbers_.dtype == DType::i64 ? static_cast<const std::int64_t*>(numbers_.data)[at]
                                        : static_cast<const std::int32_t*>(numbers_.data)[at];
  }

  View numbers_;
  std::int64_t rows_ = 0, first_ = 0, step_ = 1;
};

}  // namespace modelflow::cpu
