// The mask of attention scores: numbers that are added to them and flags that say which scores count.
#pragma once

#include <cstddef>
#include <cstdint>

namespace modelflow::cpu {

/// What happens to scores: numbers are added to them; by flags one of two numbers is added to a score or replaces it.
struct AttentionMask {
  struct Strides {
    std::size_t row = 0, column = 0;  ///< elements from one to the next, 0 where the mask is repeated; column is 0 or 1
  };
  const float* numbers = nullptr;
  const std::uint8_t* flags = nullptr;
  Strides stride, flag_stride;                     ///< of numbers, of flags
  float on = 0, off = 0;                           ///< what flags mean
  bool on_replaces = false, off_replaces = false;  ///< the other one is 0
  bool numbers_last = false;                       ///< flags act first

  explicit operator bool() const { return numbers || flags; }
  float operator()(float score, std::size_t key) const {
    if (numbers && !numbers_last) score += numbers[key * stride.column];
    if (flags) {
      const bool flag = flags[key * flag_stride.column] != 0;
      const float number = flag ? on : off;
      score = (flag ? on_replaces : off_replaces) ? number : score + number;
    }
    return numbers && numbers_last ? score + numbers[key * stride.column] : score;
  }
  /// Brings the numbers for n keys of a later row into cache, of `left` rows from this one on: where every row has its
  /// own they are read once, from memory (Zen 5, windows of 343 tokens, a mask for each: 1.2 times as fast).
  void fetch(std::size_t left, std::size_t n) const {
    constexpr std::size_t kRows = 8, kLine = 16;
    if (stride.row == 0 || stride.column == 0 || left <= kRows) return;
    for (std::size_t key = 0; key < n; key += kLine) __builtin_prefetch(numbers + kRows * stride.row + key);
  }
  /// The mask from this row and key on.
  AttentionMask from(std::size_t r, std::size_t key) const {
    AttentionMask rest = *this;
    if (numbers) rest.numbers += r * stride.row + key * stride.column;
    if (flags) rest.flags += r * flag_stride.row + key * flag_stride.column;
    return rest;
  }
};

}  // namespace modelflow::cpu
