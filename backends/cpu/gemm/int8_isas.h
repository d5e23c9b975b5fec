// What differs between VNNI and AMX in products of 8-bit numbers: panels of rows of A, the depth that B is padded to,
// the product.
#pragma once

#include "backends/cpu/gemm/bf16_int8_amx.h"
#include "backends/cpu/gemm/int8_vnni.h"

namespace modelflow::cpu {

struct OnVnni {
  using Panels = RowPanels;
  static constexpr const char* kLayout = "gemm_vnni";
  static std::size_t depth(std::size_t k) { return vnni_depth(k); }
  static constexpr auto multiply = gemm_vnni;
};

struct OnAmx {
  using Panels = TilePanels;
  static constexpr const char* kLayout = "gemm_bytes_amx";
  static std::size_t depth(std::size_t k) { return tile_steps(k) * kTileBytes; }
  static constexpr auto multiply = gemm_bytes_amx;
};

}  // namespace modelflow::cpu
