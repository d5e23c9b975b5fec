// Memory for packed weights: blocks of their own, aligned, given back page by page.
#include "backends/cpu/frame/weight_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace modelflow::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct Piece {
  std::shared_ptr<std::byte> memory;
  std::size_t size;
  std::byte value;

  bool holds() const {
    for (std::size_t i = 0; i < size; ++i)
      if (memory.get()[i] != value) return false;
    return true;
  }
};

Piece filled(std::size_t size, unsigned value) {
  Piece piece{weight_memory(size), size, static_cast<std::byte>(value)};
  std::fill_n(piece.memory.get(), size, piece.value);
  return piece;
}

TEST(WeightMemory, PiecesKeepWhatWasWrittenWhileOthersComeAndGo) {
  std::mt19937 random(5);
  std::vector<Piece> pieces;
  for (unsigned i = 0; i < 400; ++i) {
    const std::size_t size = std::size_t{1} << random() % 22;
    pieces.push_back(filled(size - random() % size, i));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces.back().memory.get()) % 64, 0u);
    if (random() % 2) pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(random() % pieces.size()));
  }
  for (const Piece& piece : pieces) EXPECT_TRUE(piece.holds());
}

TEST(WeightMemory, NothingAndMoreThanABlock) {
  EXPECT_NE(weight_memory(0), nullptr);
  EXPECT_NE(weight_memory(0), weight_memory(0));
  const Piece large = filled(70 * kHugePage + 1, 7), small = filled(1, 8);
  EXPECT_EQ(large.memory.get()[large.size - 1], large.value);
  EXPECT_TRUE(small.holds());
}

TEST(WeightMemory, PagesGoBackWithTheLastPieceInThem) {
  if (kWeightsLieAlone) GTEST_SKIP() << "with AddressSanitizer each piece lies alone";
  const Piece before = filled(100, 1);
  Piece large = filled(5 * kHugePage, 2);
  const Piece behind = filled(kHugePage, 3);
  const std::byte* inside = large.memory.get() + 2 * kHugePage;
  large.memory.reset();
  // The address stays the block's: a page that went back to the system reads as zeros.
  EXPECT_EQ(*inside, std::byte{0});
  EXPECT_TRUE(before.holds());
  EXPECT_TRUE(behind.holds());
}

TEST(WeightMemory, ThreadsTakeAndGiveBackAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (unsigned t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 100; ++i) right[t] += filled(1000 * (i + 1), 16 * t + i % 16).holds();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) EXPECT_EQ(count, 100);
}

}  // namespace
}  // namespace modelflow::cpu
