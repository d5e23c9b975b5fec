// Packs weights of 4 bits.
#include "backends/cpu/gemm/int4.h"

#include <cstring>

namespace modelflow::cpu {

std::size_t packed_b4_bytes(const Weights4& w) {
  return (w.n + kPanel4 - 1) / kPanel4 * w.blocks * block4_bytes(w.block, w.zero != nullptr);
}

void pack_b4(const Weights4& w, std::byte* out) {
  std::memset(out, 0, packed_b4_bytes(w));
  const std::size_t bytes = block4_bytes(w.block, w.zero != nullptr);
  for (std::size_t column = 0; column < w.n; ++column) {
    const std::size_t c = column % kPanel4;
    for (std::size_t i = 0; i < w.blocks; ++i) {
      std::byte* to = out + (column / kPanel4 * w.blocks + i) * bytes;
      const float scale = w.scale[column * w.blocks + i];
      auto* header = reinterpret_cast<float*>(to);
      header[c] = scale;
      if (w.zero) header[kPanel4 + c] = scale * w.zero[column * w.blocks + i];
      const std::uint8_t* from = w.b + (column * w.blocks + i) * w.block / 2;
      const auto step = [&](std::size_t k) { return k % 2 ? from[k / 2] >> 4 : from[k / 2] & 15; };
      for (std::size_t k = 0; k < w.block; k += 8) {
        std::byte* four = to + header4_bytes(w.zero != nullptr) + k / 8 * 128 + 4 * c;
        for (std::size_t j = 0; j < 4; ++j) four[j] = static_cast<std::byte>(step(k + j) | step(k + 4 + j) << 4);
      }
    }
  }
}

}  // namespace modelflow::cpu
