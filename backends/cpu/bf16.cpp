#include "backends/cpu/bf16.h"

#include <algorithm>

#include "backends/cpu/gemm_bf16.h"
#include "backends/cpu/share.h"
#include "backends/cpu/vector_code.h"
#include "modelflow/bf16.h"

namespace modelflow::cpu {

double bf16_gain(const Target& target, double depth) {
  if (target.isa < Isa::avx512_bf16) return 1;
  return target.isa >= Isa::amx ? std::clamp(16 * depth / 32, 1.0, 16.0) : 2;
}

namespace {

/// Runs body(begin, end) on shares of the numbers that are worth a task.
template <class Body>
void share_numbers(std::size_t count, Invocation& call, Body body) {
  constexpr std::size_t kShare = 16384;
  share(call, count, std::min(count / kShare, call.threads() * 2),
        [&](std::size_t begin, std::size_t end, std::size_t) { body(begin, end); });
}

}  // namespace

const float* widened(const VectorCode& code, const std::uint16_t* in, std::size_t count, Invocation& call) {
  auto* out = reinterpret_cast<float*>(call.scratch(count * sizeof(float)));
  share_numbers(count, call,
                [&](std::size_t begin, std::size_t end) { code.channels.widen(in + begin, end - begin, out + begin); });
  return out;
}

const float* rounded_to_bf16(const View& in, const Target& target, Invocation& call) {
  const auto count = static_cast<std::size_t>(element_count(in.dims));
  if (in.dtype == DType::bf16)
    return widened(vector_code(target), static_cast<const std::uint16_t*>(in.data), count, call);
  auto* out = reinterpret_cast<float*>(call.scratch(count * sizeof(float)));
  share_numbers(count, call, [&](std::size_t begin, std::size_t end) {
    const auto* from = static_cast<const float*>(in.data);
    if (target.isa >= Isa::avx512) return round_to_bf16_avx512(from + begin, end - begin, out + begin);
    std::transform(from + begin, from + end, out + begin, [](float x) { return from_bf16(to_bf16(x)); });
  });
  return out;
}

void round_to_bf16(const VectorCode& code, const float* in, std::size_t count, std::uint16_t* out, Invocation& call) {
  share_numbers(count, call, [&](std::size_t begin, std::size_t end) {
    code.channels.narrow(in + begin, end - begin, out + begin);
  });
}

}  // namespace modelflow::cpu
