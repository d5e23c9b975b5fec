#include "backends/cpu/bf16.h"

#include <algorithm>

#include "backends/cpu/gemm_bf16.h"
#include "backends/cpu/share.h"
#include "modelflow/bf16.h"

namespace modelflow::cpu {

double bf16_gain(const Target& target, double depth) {
  if (target.isa < Isa::avx512_bf16) return 1;
  return target.isa >= Isa::amx ? std::clamp(16 * depth / 32, 1.0, 16.0) : 2;
}

const float* rounded_to_bf16(const float* in, std::size_t count, const Target& target, Invocation& call) {
  auto* out = reinterpret_cast<float*>(call.scratch(count * sizeof(float)));
  constexpr std::size_t kShare = 16384;  // numbers that are worth a task
  share(call, count, std::min(count / kShare, call.threads() * 2),
        [&](std::size_t begin, std::size_t end, std::size_t) {
          if (target.isa >= Isa::avx512) return round_to_bf16_avx512(in + begin, end - begin, out + begin);
          std::transform(in + begin, in + end, out + begin, [](float x) { return from_bf16(to_bf16(x)); });
        });
  return out;
}

}  // namespace modelflow::cpu
