// The packing of int8 weights of recurrent layers in words of some steps of depth.
#pragma once

#include "backends/cpu/recurrent/code.h"

namespace modelflow::cpu {

inline constexpr int kStepZero = 128;  ///< what stands for 0 in unsigned steps

/// Of one block of units: the weights [words, gates, kUnits, steps of a word], then what the zeros of the rows add to
/// each sum.
std::size_t word_block_bytes(std::size_t depth, std::size_t gates, std::size_t word);
std::size_t packed_word_bytes(const RecurrentMatrix& matrix, std::size_t word);
void pack_words(const RecurrentMatrix& matrix, const void* weights, std::size_t word, std::byte* packed);

}  // namespace modelflow::cpu
