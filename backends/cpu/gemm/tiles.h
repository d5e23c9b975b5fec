// How the operands of products on AMX lie in memory. A tile register has 16 rows of 64 bytes.
#pragma once

#include <cstddef>

namespace modelflow::cpu {

inline constexpr std::size_t kTileRows = 16, kTileColumns = 16, kTileBytes = 64;
/// Rows of A and columns of B that meet in one go.
inline constexpr std::size_t kTileBlock = 32;

/// Numbers of 8 significant bits that a float32 is the sum of.
inline constexpr std::size_t kTileParts = 3;
/// Products of parts that a product of two such numbers is made of; three more are below its last bit.
inline constexpr std::size_t kPartProducts = 6;

/// Products of tiles that a row of A of so many bytes takes.
static inline std::size_t tile_steps(std::size_t bytes) { return (bytes + kTileBytes - 1) / kTileBytes; }
/// Bytes from a row of A to the next: an odd number of lines, so that the rows of a tile differ in their sets of L1.
static inline std::size_t tile_row(std::size_t bytes) { return kTileBytes * (tile_steps(bytes) | 1); }

/// A [m, row bytes] as tiles read it: panels of nearly the same number of rows, at most 32, each with room for 32.
struct TilePanels {
  std::size_t m, row;
  std::size_t count() const { return (m + kTileBlock - 1) / kTileBlock; }
  /// The first row of a panel; m for the one behind the last.
  std::size_t begin(std::size_t panel) const { return m * panel / count(); }
  /// Where a panel begins; what lies before count() has this many bytes.
  std::size_t offset(std::size_t panel) const { return panel * kTileBlock * tile_row(row); }
  std::size_t bytes() const { return offset(count()); }
  /// Rows of a tile: the highest panel fills two of the same number of them, or one.
  std::size_t tile_rows() const {
    const std::size_t highest = (m + count() - 1) / count();
    return highest > kTileRows ? (highest + 1) / 2 : highest;
  }
};

}  // namespace modelflow::cpu
