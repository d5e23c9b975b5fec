#include <algorithm>

#include "backends/cpu/bytes.h"
#include "backends/cpu/channel_mean.h"
#include "backends/cpu/share.h"
#include "backends/kernels.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kBlock = 64;

Quantization side(const Attrs& attrs, const std::string& of) {
  return {attrs.number(of + "_scale", 1), static_cast<std::int32_t>(attrs.integer(of + "_zero_point"))};
}

class QAdd : public Implementation {
 public:
  explicit QAdd(const Call& call)
      : sum_{side(call.attrs, "a"), side(call.attrs, "b"), side(call.attrs, "y"),
             call.attrs.text("activation", "None") == "Relu"} {}

  void run(Invocation& call) const override {
    const View a = call.input(0), b = call.input(1);
    if (a.dtype != DType::u8 || b.dtype != DType::u8 ||
        !std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end()))
      throw Error(ErrorKind::invalid_input, "QAdd: the operands are not of one shape in 8 bits");
    const auto count = static_cast<std::size_t>(element_count(a.dims));
    auto* y = static_cast<std::uint8_t*>(call.output(0, a.dims));
    const std::size_t blocks = (count + kBlock - 1) / kBlock, tasks = std::min(tasks_for(count, call), blocks);
    share(call, blocks, tasks, [&](std::size_t begin, std::size_t end, std::size_t) {
      const std::size_t first = begin * kBlock, last = std::min(end * kBlock, count);
      if (first >= last) return;
      byte_loops().add(sum_, static_cast<const std::uint8_t*>(a.data) + first,
                       static_cast<const std::uint8_t*>(b.data) + first, last - first, y + first);
    });
  }

 private:
  ByteSum sum_;
};

Verdict accepts(const Call& call) {
  for (const Operand& in : call.inputs)
    if (in.dtype != DType::u8) return no("is not uint8", in.name);
  return yes();
}

}  // namespace

const Kernel qadd = {
    .op = "QAdd",
    .name = "cpu.qadd",
    .accepts = accepts,
    .cost = [](const Call& call,
               const Target& target) { return 1e-6 + target.stream(3 * call.outputs.at(0).shape.known_elements()); },
    .create = [](const Call& call, const Target&) -> std::unique_ptr<Implementation> {
      return std::make_unique<QAdd>(call);
    },
};

}  // namespace modelflow::cpu
