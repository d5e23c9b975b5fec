// Attention in low precision: keys and values are packed once, then a block of rows meets all keys. Internal linkage on
// purpose, as in softmax_avx512.h.
#pragma once

#include "backends/cpu/attention/softmax_avx512.h"

namespace modelflow::cpu {
namespace {

/// `Operands(head, memory)` lays out the packed keys and values and packs them, `Block(head, first, count, memory)` a
/// block of rows and what is in between; both say how many floats they take. `run(block, operands)` fills its rows of
/// y, and says whether keys that it left out matter.
template <class Operands, class Block, std::size_t kRows>
struct AttentionBlocks {
  static std::size_t packed_floats(const AttentionHead& h) { return Operands(h, nullptr).floats; }

  static void pack(const AttentionHead& h, std::size_t part, std::size_t parts, float* packed) {
    const Operands to(h, packed);
    if (part == 0) to.pack_keys(h);
    if (part + 1 == least(parts, 2)) to.pack_values(h);  // the second part, or the only one
  }

  static std::size_t scratch_floats(const AttentionHead& h) { return Block(h, 0, kRows, nullptr).floats; }

  static void rows(const AttentionHead& h, const AttentionHead*, const float* packed, std::size_t begin,
                   std::size_t end, float* scratch) {
    const Operands operands(h, const_cast<float*>(packed));
    AttentionHead whole = h;
    whole.whole = true;
    for (std::size_t row = begin; row < end; row += kRows) {
      const std::size_t count = least(kRows, end - row);
      if (run(Block(h, row, count, scratch), operands)) run(Block(whole, row, count, scratch), operands);
    }
  }

  static constexpr AttentionCode code(std::size_t most_keys) {
    return {kRows, packed_floats, pack, scratch_floats, rows, nullptr, largest_size, most_keys};
  }
};

}  // namespace
}  // namespace modelflow::cpu
