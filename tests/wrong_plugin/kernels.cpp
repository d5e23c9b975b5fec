// The kernels of a plugin that is wrong on purpose: what verification has to find. Linked in place of
// backends/kernels.cpp.
#define kernels right_kernels
#define choose_kernel right_choice
#include "backends/kernels.cpp"  // NOLINT
#undef kernels
#undef choose_kernel

#include <cmath>
#include <vector>

namespace modelflow {
namespace {

using Harm = void (*)(float& y);

void every_value(float& y) { y *= 1.001F; }
void negative_values(float& y) { y = y < 0 ? y * 1.01F : y; }
void hides_nan(float& y) { y = std::isnan(y) ? 1 : y; }
void nothing(float&) {}

/// Passes everything on and remembers where the result goes.
class Listening : public Invocation {
 public:
  explicit Listening(Invocation& call) : call_(call) {}
  std::size_t inputs() const override { return call_.inputs(); }
  View input(std::size_t i) const override { return call_.input(i); }
  void* output(std::size_t i, std::span<const std::int64_t> dims) override {
    void* data = call_.output(i, dims);
    if (i == 0) y = static_cast<float*>(data), count = element_count(dims);
    return data;
  }
  void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) override {
    call_.parallel(tasks, body);
  }
  std::size_t threads() const override { return call_.threads(); }
  std::byte* scratch(std::size_t bytes) override { return call_.scratch(bytes); }

  float* y = nullptr;
  std::int64_t count = 0;

 private:
  Invocation& call_;
};

class Harmed : public Implementation {
 public:
  Harmed(std::unique_ptr<Implementation> right, Harm harm, bool refuses_empty)
      : right_(std::move(right)), harm_(harm), refuses_empty_(refuses_empty) {}
  void run(Invocation& call) const override {
    Listening listening(call);
    right_->run(listening);
    if (refuses_empty_ && listening.count == 0) throw Error(ErrorKind::invalid_input, "nothing to compute");
    for (std::int64_t i = 0; i < listening.count; ++i) harm_(listening.y[i]);
  }

 private:
  std::unique_ptr<Implementation> right_;
  Harm harm_;
  bool refuses_empty_;
};

template <Harm harm, bool refuses_empty>
std::unique_ptr<Implementation> make(const Call& call, const Target& target) {
  return std::make_unique<Harmed>(right_choice(call, target).kernel->create(call, target), harm, refuses_empty);
}

Verdict accepts_all(const Call&, const Target&) { return yes(); }
double no_cost(const Call&, const Target&) { return 0; }

constexpr Kernel wrong(std::string_view op, decltype(Kernel::create) create) {
  return {.op = op, .name = "wrong", .accepts = accepts_all, .cost = no_cost, .create = create};
}

const Kernel kWrong[] = {wrong("MatMul", make<every_value, false>), wrong("Pointwise", make<negative_values, false>),
                         wrong("Activation", make<hides_nan, false>), wrong("LayerNorm", make<nothing, true>)};

const Kernel* wrong_one(std::string_view op) {
  for (const Kernel& kernel : kWrong)
    if (kernel.op == op) return &kernel;
  return nullptr;
}

}  // namespace

std::span<const Kernel* const> kernels() { return right_kernels(); }

Choice choose_kernel(const Call& call, const Target& target) {
  Choice choice = right_choice(call, target);
  if (const Kernel* wrong = wrong_one(call.op); choice.kernel && wrong) choice.kernel = wrong;
  return choice;
}

}  // namespace modelflow
