// Products of 8-bit numbers with exact sums in 32 bits, in words of four bytes: four numbers to a lane with AVX-VNNI,
// and without where the weights are bounded in pairs, else two that are widened to 16 bits. (What vpmaddubsw adds up
// saturates: 255 * 127 twice is more than 16 bits hold.) For files named *_avx2.cpp, see vector.h.
#pragma once

#include "backends/cpu/vector/vector.h"

namespace modelflow::cpu {
namespace {

// Of a kind of word: how many unsigned numbers ("steps") of A it holds and how these lie in memory; kLanes columns of
// as many signed bytes of B each, as a register has them; sum += the products of a word.

struct PairWords {
  using Step = std::uint16_t;
  static constexpr std::size_t kSteps = 2;
  static MODELFLOW_INLINE Ints weights(const std::byte* at) {
    return reinterpret_cast<Ints>(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
  }
  static MODELFLOW_INLINE void add(Ints& sum, Ints a, Ints w) {
    // Written out, since GCC 12 gathers products before it adds them up and spills them, which costs 40 %.
    Ints products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(products) : "x"(a), "x"(w));
  }
};

/// Only where the machine has AVX-VNNI, which is why it is written out: no flag of the compiler allows it here.
struct QuadWords {
  using Step = std::uint8_t;
  static constexpr std::size_t kSteps = 4;
  static MODELFLOW_INLINE Ints weights(const std::byte* at) {
    Ints w;
    __builtin_memcpy(&w, at, sizeof w);
    return w;
  }
  static MODELFLOW_INLINE void add(Ints& sum, Ints a, Ints w) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(w));
  }
};

/// Weights whose pairs are bounded (src/core/bounded_pairs.h): what vpmaddubsw adds up fits in 16 bits.
struct BoundedWords {
  using Step = std::uint8_t;
  static constexpr std::size_t kSteps = 4;
  static MODELFLOW_INLINE Ints weights(const std::byte* at) { return QuadWords::weights(at); }
  static MODELFLOW_INLINE void add(Ints& sum, Ints a, Ints w) {
    static constexpr std::int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    Ints products;
    asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
        : "+x"(sum), "=&x"(products)
        : "x"(a), "x"(w), "m"(kOnes));
  }
};

/// The same word in all lanes.
MODELFLOW_INLINE Ints all_words(const void* at) {
  std::int32_t word;
  __builtin_memcpy(&word, at, sizeof word);
  return word - Ints{};
}

MODELFLOW_INLINE Ints load_ints(const std::int32_t* at) {
  Ints x;
  __builtin_memcpy(&x, at, sizeof x);
  return x;
}
MODELFLOW_INLINE void store_ints(std::int32_t* at, Ints x) { __builtin_memcpy(at, &x, sizeof x); }

}  // namespace
}  // namespace modelflow::cpu
