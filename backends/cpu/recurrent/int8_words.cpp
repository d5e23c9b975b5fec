// Packs int8 weights of recurrent layers in words.
#include "backends/cpu/recurrent/int8_words.h"

namespace modelflow::cpu {
namespace {

std::size_t whole_words(std::size_t depth, std::size_t word) { return (depth + word - 1) / word * word; }

}  // namespace

std::size_t word_block_bytes(std::size_t depth, std::size_t gates, std::size_t word) {
  return (whole_words(depth, word) + sizeof(std::int32_t)) * gates * kUnits;
}

std::size_t packed_word_bytes(const RecurrentMatrix& m, std::size_t word) {
  return unit_blocks(m.hidden) * word_block_bytes(m.depth, m.gates, word);
}

void pack_words(const RecurrentMatrix& m, const void* weights, std::size_t word, std::byte* packed) {
  const auto* from = static_cast<const std::int8_t*>(weights) + m.first * m.hidden * m.depth;
  const std::size_t depth = whole_words(m.depth, word);
  for (std::size_t block = 0; block < unit_blocks(m.hidden); ++block) {
    auto* to = reinterpret_cast<std::int8_t*>(packed + block * word_block_bytes(m.depth, m.gates, word));
    auto* sums = reinterpret_cast<std::int32_t*>(to + depth * m.gates * kUnits);
    for (std::size_t lane = 0; lane < m.gates * kUnits; ++lane) {
      const std::size_t unit = block * kUnits + lane % kUnits;
      const std::int8_t* row = from + (lane / kUnits * m.hidden + unit) * m.depth;
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < depth; ++k) {
        const std::int8_t w = unit < m.hidden && k < m.depth ? row[k] : std::int8_t{0};
        to[(k / word * m.gates * kUnits + lane) * word + k % word] = w;
        sum += w;
      }
      sums[lane] = kStepZero * sum;
    }
  }
}

}  // namespace modelflow::cpu
