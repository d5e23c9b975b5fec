// Operations of a warp on the host: shuffles, votes, and those of tensor cores, from the layouts in the PTX manual.
#pragma once

#include <cstdint>
#include <cstring>

#include "backends/cuda/emulator/block.h"

namespace modelflow::cuda::emulated {

template <class T>
struct Exchange {
  T value;
  int source;
};

/// The value of lane `source`; -1 keeps one's own. What a lane outside of the mask gives is undefined on a GPU: all
/// ones here.
template <class T>
T shuffle(unsigned mask, T value, int source, const char* what) {
  Exchange<T> mine{value, source};
  const auto combine = [](void* const* lanes, unsigned together) {
    T values[32];
    for (unsigned i = 0; i < 32; ++i)
      if (together >> i & 1U) values[i] = static_cast<Exchange<T>*>(lanes[i])->value;
    for (unsigned i = 0; i < 32; ++i) {
      if (!(together >> i & 1U)) continue;
      auto& lane = *static_cast<Exchange<T>*>(lanes[i]);
      if (lane.source < 0) continue;
      if (together >> static_cast<unsigned>(lane.source) & 1U) {
        lane.value = values[lane.source];
      } else {
        std::memset(static_cast<void*>(&lane.value), 0xff, sizeof lane.value);
      }
    }
  };
  meet(mask, combine, &mine, what);
  return mine.value;
}

struct Vote {
  unsigned in, out;
};

inline unsigned ballot(unsigned mask, bool predicate, const char* what) {
  Vote mine{predicate ? 1U : 0U, 0};
  const auto combine = [](void* const* lanes, unsigned together) {
    unsigned all = 0;
    for (unsigned i = 0; i < 32; ++i)
      if (together >> i & 1U) all |= static_cast<Vote*>(lanes[i])->in << i;
    for (unsigned i = 0; i < 32; ++i)
      if (together >> i & 1U) static_cast<Vote*>(lanes[i])->out = all;
  };
  meet(mask, combine, &mine, what);
  return mine.out;
}

template <class T>
float half_of(std::uint32_t word, unsigned i) {
  T number;
  const auto bits = static_cast<std::uint16_t>(word >> (16 * i));
  std::memcpy(static_cast<void*>(&number), &bits, 2);
  return static_cast<float>(number);
}

template <class Sum>
struct Product {
  Sum (*d)[4];
  const std::uint32_t (*a)[4];
  const std::uint32_t (*b)[2];
};

/// D += A B on one warp, A row-major, B column-major, `in_word` numbers in a register; element (row, column) of the
/// fragments by group = lane / 4 and in = lane % 4. left_of(word, i) and right_of(word, i) read one of A and one of B.
template <unsigned in_word, auto left_of, auto right_of, class Sum>
void mma(Sum (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  Product<Sum> mine{&d, &a, &b};
  const auto combine = [](void* const* lanes, unsigned) {
    constexpr unsigned kHalf = 4 * in_word, kDeep = 2 * kHalf;
    Sum left[16][kDeep], right[kDeep][8];
    for (unsigned lane = 0; lane < 32; ++lane) {
      const auto& part = *static_cast<Product<Sum>*>(lanes[lane]);
      const unsigned group = lane / 4, in = lane % 4;
      for (unsigned r = 0; r < 4; ++r)
        for (unsigned i = 0; i < in_word; ++i)
          left[group + 8 * (r & 1U)][in * in_word + i + kHalf * (r >> 1)] = left_of((*part.a)[r], i);
      for (unsigned r = 0; r < 2; ++r)
        for (unsigned i = 0; i < in_word; ++i) right[in * in_word + i + kHalf * r][group] = right_of((*part.b)[r], i);
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      auto& out = *static_cast<Product<Sum>*>(lanes[lane])->d;
      for (unsigned r = 0; r < 4; ++r) {
        const unsigned row = lane / 4 + 8 * (r >> 1), column = lane % 4 * 2 + (r & 1U);
        Sum sum = 0;
        for (unsigned k = 0; k < kDeep; ++k) sum += left[row][k] * right[k][column];
        out[r] += sum;
      }
    }
  };
  meet(~0U, combine, &mine, "mma");
}

/// m16n8k16 of 16-bit numbers.
template <class T>
void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma<2, half_of<T>, half_of<T>>(d, a, b);
}

template <class T>
std::int32_t byte_of(std::uint32_t word, unsigned i) {
  return static_cast<T>(static_cast<std::uint8_t>(word >> (8 * i)));
}

/// m16n8k32 of bytes, those of A without and those of B with a sign.
inline void mma_16x8x32(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma<4, byte_of<std::uint8_t>, byte_of<std::int8_t>>(d, a, b);
}

struct Rows {
  std::uint32_t (*r)[4];
  const void* row;
  bool transposed;
};

/// Four 8x8 matrices of 16-bit numbers: lane i names row i % 8 of matrix i / 8, and gets two neighbours of a row of
/// each matrix; transposed, of a column.
inline void ldmatrix_x4(std::uint32_t (&r)[4], const void* row, bool transposed) {
  check_aligned(row, 16, "ldmatrix");
  Rows mine{&r, row, transposed};
  const auto combine = [](void* const* lanes, unsigned) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      auto& to = *static_cast<Rows*>(lanes[lane]);
      for (unsigned m = 0; m < 4; ++m) {
        const auto number = [&](unsigned i, unsigned k) {  // element k of row i
          return static_cast<std::uint32_t>(
              static_cast<const std::uint16_t*>(static_cast<Rows*>(lanes[m * 8 + i])->row)[k]);
        };
        const unsigned i = lane / 4, k = lane % 4 * 2;
        (*to.r)[m] = to.transposed ? number(k, i) | number(k + 1, i) << 16 : number(i, k) | number(i, k + 1) << 16;
      }
    }
  };
  meet(~0U, combine, &mine, "ldmatrix");
}

}  // namespace modelflow::cuda::emulated
