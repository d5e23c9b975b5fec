// A kernel is one object. This one runs Activation for Relu; to put it into the product, move the object to
// a room of backends/cpu and add it to the kernels.h there.
#include <cstdio>
#include <vector>

#include "backends/host_invocation.h"
#include "modelflow/kernel.h"

using namespace modelflow;

namespace {

class Relu : public Implementation {
 public:
  void run(Invocation& call) const override {
    const View x = call.input(0);
    const std::int64_t count = element_count(x.dims);
    auto* y = static_cast<float*>(call.output(0, x.dims));
    const auto* from = static_cast<const float*>(x.data);
    const std::int64_t block = 4096, tasks = (count + block - 1) / block;
    call.parallel(static_cast<std::size_t>(tasks), [&](std::size_t task) {
      const std::int64_t begin = static_cast<std::int64_t>(task) * block, end = std::min(begin + block, count);
      for (std::int64_t i = begin; i < end; ++i) y[i] = from[i] > 0 ? from[i] : 0;
    });
  }
};

const Kernel own_relu = {
    .op = "Activation",
    .name = "cpu.own_relu",
    .accepts =
        [](const Call& call, const Target&) {
          return call.attrs.text("activation") == "Relu" ? yes() : no("only Relu", call.attrs.text("activation"));
        },
    .cost =
        [](const Call& call, const Target& target) {
          const Dim elements = call.in(0).shape.elements();
          return target.stream(8.0 * static_cast<double>(elements.known() ? elements.value() : 1));
        },
    .create = [](const Call&, const Target&) -> std::unique_ptr<Implementation> { return std::make_unique<Relu>(); },
};

}  // namespace

int main() {
  HostThreads threads(2);
  int ran = 0;
  for (const Call& call : find_fused_op("Activation")->samples()) {
    if (const Verdict verdict = own_relu.accepts(call, Target::host()); !verdict) {
      std::printf("refused: %s\n", verdict.reason.c_str());
      continue;
    }
    const Tensor x = Tensor::of<float>({4}, {-1, 0, 2, -3});
    HostInvocation invocation(threads, {x});
    own_relu.create(call, Target::host())->run(invocation);
    if (!invocation.result(0).same_content(Tensor::of<float>({4}, {0, 0, 2, 0}))) return 1;
    ++ran;
  }
  std::printf("ran %d sample calls\n", ran);
  return ran > 0 ? 0 : 1;
}
