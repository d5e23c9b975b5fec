// Finds numbers that are not moderate, and hands calls with such operands to another kernel.
#include "backends/cpu/onednn/moderate.h"

#include <atomic>

#include "backends/cpu/frame/share.h"

namespace modelflow::cpu {
namespace {

/// Exponents of 2^64 and more, in the bits of the number itself: absolute values are ordered as integers are.
template <class Bits>
bool all_below(const Bits* bits, std::size_t n, Bits sign, Bits most) {
  constexpr std::size_t kTogether = 256;  // a loop without an end of its own is one of vectors
  Bits largest = 0;
  std::size_t i = 0;
  for (; i + kTogether <= n; i += kTogether) {
    Bits found[16] = {};
    for (std::size_t j = 0; j < kTogether; j += 16)
      for (std::size_t lane = 0; lane < 16; ++lane) {
        const auto size = static_cast<Bits>(bits[i + j + lane] & static_cast<Bits>(~sign));
        found[lane] |= static_cast<Bits>(size >= most);
      }
    for (const Bits lane : found) largest |= lane;
    if (largest) return false;
  }
  for (; i < n; ++i)
    if (static_cast<Bits>(bits[i] & static_cast<Bits>(~sign)) >= most) return false;
  return true;
}

bool all_below(const void* data, DType dtype, std::size_t begin, std::size_t end) {
  if (dtype == DType::bf16)
    return all_below<std::uint16_t>(static_cast<const std::uint16_t*>(data) + begin, end - begin, 0x8000, 0x5f80);
  return all_below<std::uint32_t>(static_cast<const std::uint32_t*>(data) + begin, end - begin, 0x80000000, 0x5f800000);
}

}  // namespace

bool moderate(const View& numbers, Invocation& call) {
  const auto count = static_cast<std::size_t>(element_count(numbers.dims));
  std::atomic<bool> all = true;
  share(call, count, tasks_for(count, call), [&](std::size_t begin, std::size_t end, std::size_t) {
    if (!all_below(numbers.data, numbers.dtype, begin, end)) all = false;
  });
  return all;
}

bool moderate(const Tensor& numbers) {
  return all_below(numbers.data(), numbers.dtype(), 0, static_cast<std::size_t>(numbers.elements()));
}

bool moderate_operands(Invocation& call) {
  for (std::size_t i = 0; i < call.inputs(); ++i)
    if (i != 1 && !moderate(call.input(i), call)) return false;
  return true;
}

ModerateOnly::ModerateOnly(const Call& call, const Target& target)
    : weights_(*call.in(1).constant), moderate_(moderate(weights_)), call_(call), target_(target) {
  for (Operand& in : call_.inputs) in.constant = nullptr;
  call_.inputs[1].constant = &weights_;
}

void ModerateOnly::run_by(const Kernel& other, Invocation& call) const {
  std::call_once(once_, [&] { other_ = other.create(call_, target_); });
  other_->run(call);
}

}  // namespace modelflow::cpu
