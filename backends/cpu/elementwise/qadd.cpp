// The sum of two tensors of 8-bit numbers with scales of their own.
#include <algorithm>
#include <numeric>

#include "backends/broadcast.h"
#include "backends/call_attrs.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kBlock = 256;

Quantization side(const CallAttrs& attrs, const std::string& of) {
  return {attrs.number(of + "_scale"), static_cast<std::int32_t>(attrs.integer(of + "_zero_point"))};
}

class QAdd : public Implementation {
 public:
  QAdd(const Call& call, const VectorCode& code)
      : sum_{side(call, "a"), side(call, "b"), side(call, "y"), CallAttrs(call).text("activation") == "Relu"},
        add_(is_exact(code.bytes) ? code.bytes.add : code.bytes.add_by_definition) {}

  void run(Invocation& call) const override {
    const View a = call.input(0), b = call.input(1);
    if (a.dtype != DType::u8 || b.dtype != DType::u8)
      throw Error(ErrorKind::invalid_input, "QAdd: an operand is not uint8");
    const Broadcast lay("QAdd", {a.dims, b.dims});
    auto* y = static_cast<std::uint8_t*>(call.output(0, lay.dims()));
    const std::size_t count = lay.elements(), blocks = (count + kBlock - 1) / kBlock;
    const auto* from_a = static_cast<const std::uint8_t*>(a.data);
    const auto* from_b = static_cast<const std::uint8_t*>(b.data);
    share(call, blocks, std::min(tasks_for(count, call), blocks), [&](std::size_t begin, std::size_t end, std::size_t) {
      const std::size_t last = std::min(end * kBlock, count);
      if (lay.whole(0) && lay.whole(1)) {
        if (begin < end)
          add_(sum_, from_a + begin * kBlock, from_b + begin * kBlock, last - begin * kBlock, y + begin * kBlock);
        return;
      }
      std::uint8_t room_a[kBlock], room_b[kBlock];
      for (std::size_t at = begin * kBlock; at < last; at += kBlock) {
        const std::size_t n = std::min(kBlock, last - at);
        lay.gather(0, from_a, at, n, room_a);
        lay.gather(1, from_b, at, n, room_b);
        add_(sum_, room_a, room_b, n, y + at);
      }
    });
  }

 private:
  /// Whether the quick sum of every two numbers is the one that the op says; takes some 50 us.
  bool is_exact(const ByteLoops& loops) const {
    std::uint8_t all[256], one[256], quick[256], said[256];
    std::iota(all, all + 256, std::uint8_t{0});
    for (int a = 0; a < 256; ++a) {
      std::fill_n(one, 256, static_cast<std::uint8_t>(a));
      loops.add(sum_, one, all, 256, quick);
      loops.add_by_definition(sum_, one, all, 256, said);
      if (!std::equal(quick, quick + 256, said)) return false;
    }
    return true;
  }

  ByteSum sum_;
  decltype(ByteLoops::add) add_;
};

Verdict accepts(const Call& call, const Target&) {
  for (const Operand& in : call.inputs)
    if (in.dtype != DType::u8) return no("is not uint8", in.name);
  return yes();
}

}  // namespace

const Kernel qadd = {
    .op = "QAdd",
    .name = "cpu.qadd",
    .needs = Isa::avx2,
    .accepts = accepts,
    .cost = [](const Call& call,
               const Target& target) { return 1e-6 + target.stream(3 * call.outputs.at(0).shape.known_elements()); },
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<QAdd>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
