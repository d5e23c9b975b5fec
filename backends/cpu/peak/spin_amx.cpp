// Products of tiles, of 8-bit numbers and of bfloat16.
#include "backends/cpu/gemm/tiles_amx.h"
#include "backends/cpu/peak/spin.h"

namespace modelflow::cpu {
namespace {

/// Products of tiles that hold zeros: the time is the same, whatever they hold.
template <TileKind Kind>
double spin_tiles(std::size_t rounds, double operations_per_product) {
  const TileRegisters registers;
  for (std::size_t left = rounds; left > 0; --left) add_product<Kind, 2, 2>();
  return static_cast<double>(rounds) * 4 * operations_per_product;
}

}  // namespace

double spin_bytes_amx(std::size_t rounds) { return spin_tiles<TileKind::bytes>(rounds, 2.0 * 16 * 16 * 64); }
double spin_bf16_amx(std::size_t rounds) { return spin_tiles<TileKind::bf16>(rounds, 2.0 * 16 * 16 * 32); }

}  // namespace modelflow::cpu
