// The kernel of Activation.
#include <algorithm>

#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/loops/vector_code.h"

namespace modelflow::cpu {
namespace {

class Elementwise : public Implementation {
 public:
  Elementwise(const Call& call, const VectorCode& code)
      : spec_(activation_of(call)), activate_(code.pointwise.activate) {}

  void run(Invocation& call) const override {
    const View x = call.input(0);
    if (x.dtype != DType::f32) throw Error(ErrorKind::invalid_input, "Activation: x is not float32");
    const auto count = static_cast<std::size_t>(element_count(x.dims));
    const auto* from = static_cast<const float*>(x.data);
    auto* to = static_cast<float*>(call.output(0, x.dims));
    constexpr std::size_t kLeast = 16384;  // floats per task: some microseconds
    const std::size_t tasks = std::clamp<std::size_t>(count / kLeast, 1, call.threads() * 4);
    const auto task = [&](std::size_t i) {
      const std::size_t first = count * i / tasks / 16 * 16,
                        last = i + 1 == tasks ? count : count * (i + 1) / tasks / 16 * 16;
      activate_(spec_, from + first, to + first, last - first);
    };
    if (tasks == 1) return task(0);
    call.parallel(tasks, task);
  }

 private:
  ActivationSpec spec_;
  void (*activate_)(const ActivationSpec&, const float*, float*, std::size_t);
};

Verdict accepts(const Call& call, const Target&) {
  if (call.inputs.size() != 1) return no("takes one input");
  if (call.in(0).dtype != DType::f32) return no("is not float32", call.in(0).name);
  try {
    activation_of(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  return yes();
}

double cost(const Call& call, const Target& target) {
  const double elements = call.in(0).shape.known_elements();
  const double work = elements * activation_flops(activation_of(call).kind);
  return std::max(target.stream(8 * elements), target.compute(work, 0.3));
}

}  // namespace

const Kernel activation = {
    .op = "Activation",
    .name = "cpu.activation",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call& call, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<Elementwise>(call, vector_code(target));
    },
};

}  // namespace modelflow::cpu
