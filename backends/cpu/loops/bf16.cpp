// Rounding of float32 to bfloat16 and back: the numbers are shared out to the threads.
#include "backends/cpu/loops/bf16.h"

#include <algorithm>

#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
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

const float* rounded_to_bf16(const VectorCode& code, const View& in, Invocation& call) {
  const auto count = static_cast<std::size_t>(element_count(in.dims));
  if (in.dtype == DType::bf16) return widened(code, static_cast<const std::uint16_t*>(in.data), count, call);
  auto* out = reinterpret_cast<float*>(call.scratch(count * sizeof(float)));
  share_numbers(count, call, [&](std::size_t begin, std::size_t end) {
    constexpr std::size_t kPiece = 2048;  // stays in the first cache
    const auto* from = static_cast<const float*>(in.data);
    std::uint16_t rounded[kPiece];
    for (std::size_t i = begin; i < end; i += kPiece) {
      const std::size_t n = std::min(kPiece, end - i);
      code.channels.narrow(from + i, n, rounded);
      code.channels.widen(rounded, n, out + i);
    }
  });
  return out;
}

void round_to_bf16(const VectorCode& code, const float* in, std::size_t count, std::uint16_t* out, Invocation& call) {
  share_numbers(count, call, [&](std::size_t begin, std::size_t end) {
    code.channels.narrow(in + begin, end - begin, out + begin);
  });
}

}  // namespace modelflow::cpu
