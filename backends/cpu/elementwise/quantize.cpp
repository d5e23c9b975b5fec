// Quantize and Dequantize: floats to bytes and back in one pass, which also moves the channels where they change place.
#include <algorithm>

#include "backends/call_attrs.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/frame/channel_tensor.h"
#include "backends/cpu/frame/share.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
namespace {

constexpr std::size_t kBlock = 64;

bool last(const CallAttrs& attrs, const char* side) { return attrs.text(side) == "NHWC"; }

/// Runs body(begin, end) on shares of `items` that begin at multiples of kBlock.
template <class Body>
void in_blocks(Invocation& call, std::size_t items, std::size_t work, const Body& body) {
  const std::size_t blocks = (items + kBlock - 1) / kBlock, tasks = std::min(tasks_for(work, call), blocks);
  share(call, blocks, tasks, [&](std::size_t begin, std::size_t end, std::size_t) {
    if (begin < end) body(begin * kBlock, std::min(end * kBlock, items));
  });
}

class Convert : public Implementation {
 public:
  Convert(const Call& call, const VectorCode& code)
      : loops_(code.bytes),
        quantizes_(call.op == "Quantize"),
        turns_(last(call, "x_layout") != last(call, "y_layout")),
        q_{CallAttrs(call).number("scale"), static_cast<std::int32_t>(CallAttrs(call).integer("zero_point"))} {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != (quantizes_ ? DType::f32 : DType::u8))
      throw Error(ErrorKind::invalid_input, "an input of the wrong type is quantized or dequantized");
    if (turns_ && x.dims.size() < 3) throw Error(ErrorKind::invalid_input, "channels move in a rank below 3");
    return turns_ ? turn(x, call) : plain(x, call);
  }

 private:
  void plain(const View& x, Invocation& call) const {
    const auto count = static_cast<std::size_t>(element_count(x.dims));
    void* y = call.output(0, x.dims);
    in_blocks(call, count, count, [&](std::size_t begin, std::size_t end) {
      if (quantizes_)
        loops_.quantize(q_, static_cast<const float*>(x.data) + begin, end - begin,
                        static_cast<std::uint8_t*>(y) + begin);
      else
        loops_.dequantize(q_, static_cast<const std::uint8_t*>(x.data) + begin, end - begin,
                          static_cast<float*>(y) + begin);
    });
  }

  void turn(const View& x, Invocation& call) const {
    const ChannelTensor t = channel_tensor(x.dims, !quantizes_);
    Dims dims(x.dims.begin(), x.dims.end());
    std::rotate(dims.begin() + 1, quantizes_ ? dims.begin() + 2 : dims.end() - 1, dims.end());
    void* y = call.output(0, dims);
    if (t.size() == 0) return;
    const std::size_t blocks = (t.rows + kBlock - 1) / kBlock,
                      tasks = std::min(tasks_for(t.size(), call), t.batch * blocks);
    share(call, t.batch * blocks, tasks, [&](std::size_t begin, std::size_t end, std::size_t) {
      while (begin < end) {
        const std::size_t image = begin / blocks, last = std::min(end, (image + 1) * blocks);
        const Planes planes = {t.rows, t.channels, begin % blocks * kBlock,
                               std::min((last - image * blocks) * kBlock, t.rows)};
        turn_part(planes, x.data, y, image * t.rows * t.channels);
        begin = last;
      }
    });
  }

  void turn_part(const Planes& planes, const void* x, void* y, std::size_t at) const {
    if (quantizes_)
      loops_.quantize_last(q_, planes, static_cast<const float*>(x) + at, static_cast<std::uint8_t*>(y) + at);
    else
      loops_.dequantize_second(q_, planes, static_cast<const std::uint8_t*>(x) + at, static_cast<float*>(y) + at);
  }

  const ByteLoops& loops_;
  bool quantizes_, turns_;
  Quantization q_;
};

Verdict accepts(const Call& call, const Target&) {
  const bool quantizes = call.op == "Quantize";
  if (call.inputs.size() != 1) return no("takes one input");
  if (call.in(0).dtype != (quantizes ? DType::f32 : DType::u8)) return no("is of another type", call.in(0).name);
  const bool from = last(call, "x_layout"), to = last(call, "y_layout");
  if (from != to && from == quantizes) return no("moves channels the other way", call.in(0).name);
  return yes();
}

double cost(const Call& call, const Target& target) {
  return 1e-6 + target.stream(5 * call.in(0).shape.known_elements());
}

std::unique_ptr<Implementation> create(const Call& call, const Target& target) {
  return std::make_unique<Convert>(call, vector_code(target));
}

}  // namespace

const Kernel quantize = {
    .op = "Quantize", .name = "cpu.quantize", .needs = Isa::avx2, .accepts = accepts, .cost = cost, .create = create};

const Kernel dequantize = {.op = "Dequantize",
                           .name = "cpu.dequantize",
                           .needs = Isa::avx2,
                           .accepts = accepts,
                           .cost = cost,
                           .create = create};

}  // namespace modelflow::cpu
