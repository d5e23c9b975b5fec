// Carries operands to a kernel of the host, in float32, and its results back.
#include "backends/ort/on_host.h"

#include <cstring>

#include "backends/cuda/invocation.h"
#include "backends/floats.h"

namespace modelflow::ort {
/// What the kernel sees: tensors of the host, for one run.
class OnHost::Operands : public Invocation {
 public:
  Operands(const OnHost& node, Invocation& device) : node_(node), device_(device) {
    for (std::size_t i = 0; i < device.inputs(); ++i)
      inputs_.push_back(node.constants_[i].dtype() != DType::undefined ? node.constants_[i] : fetched(device.input(i)));
  }

  std::size_t inputs() const override { return inputs_.size(); }
  View input(std::size_t i) const override {
    const Tensor& tensor = inputs_.at(i);
    return {tensor.dtype(), tensor.dims(), tensor.data()};
  }
  void* output(std::size_t i, std::span<const std::int64_t> dims) override {
    Result result{nullptr, {}, nullptr};
    result.there = device_.output(i, dims);  // what it takes the place of has been read
    result.here = Tensor::make(node_.outputs_.at(i), Dims(dims.begin(), dims.end()),
                               [&](std::byte* bytes) { result.bytes = bytes; });
    return results_.emplace_back(std::move(result)).bytes;
  }
  void parallel(std::size_t tasks, const std::function<void(std::size_t)>& body) override {
    device_.parallel(tasks, body);
  }
  std::size_t threads() const override { return device_.threads(); }
  std::byte* scratch(std::size_t bytes) override {
    std::byte* block = nullptr;
    scratch_.push_back(
        Tensor::make(DType::u8, {static_cast<std::int64_t>(bytes)}, [&](std::byte* made) { block = made; }));
    return block;
  }

  void store() {
    for (Result& result : results_) {
      result.here = in_type(result.here, node_.floats_);
      if (result.here.bytes() > 0) node_.copy(result.there, result.here.data(), result.here.bytes(), stream());
    }
    node_.wait(stream());
  }

 private:
  struct Result {
    void* there;
    Tensor here;
    std::byte* bytes;
  };
  void* stream() const override { return device_.stream(); }

  Tensor fetched(const View& view) const {
    const auto copied = [&](std::byte* bytes) {
      if (const std::size_t size = byte_count(view.dtype, view.dims)) std::memcpy(bytes, view.data, size);
    };
    const Tensor here = node_.library_ ? cuda::downloaded(*node_.library_, view, stream())
                                       : Tensor::make(view.dtype, Dims(view.dims.begin(), view.dims.end()), copied);
    return node_.widens_ ? in_float32(here) : here;
  }

  const OnHost& node_;
  Invocation& device_;
  std::vector<Tensor> inputs_;
  std::vector<Result> results_;
  std::vector<Tensor> scratch_;
};

OnHost::OnHost(const Call& call, DType floats, const Target& host, const cuda::DeviceLibrary* library)
    : library_(library), widens_(takes_any_float(*find_fused_op(call.op))), floats_(floats) {
  Call here = call;
  here.outputs.clear();
  for (Operand& operand : here.inputs) {
    const Tensor* known = operand.constant;
    constants_.push_back(known && widens_ ? in_float32(*known) : known ? *known : Tensor());
    if (widens_ && operand.dtype == floats) operand.dtype = DType::f32;
  }
  for (std::size_t i = 0; i < here.inputs.size(); ++i)
    if (here.inputs[i].constant) here.inputs[i].constant = &constants_[i];
  if (const Verdict verdict = find_fused_op(here.op)->infer(here); !verdict)
    throw Error(ErrorKind::invalid_input, verdict.reason);
  for (const Operand& operand : here.outputs) outputs_.push_back(operand.dtype);
  const Choice choice = choose_kernel(here, host);
  if (!choice.kernel) throw Error(ErrorKind::unsupported, "no kernel: " + choice.reason);
  implementation_ = choice.kernel->create(here, host);
  if (!implementation_)
    throw Error(ErrorKind::unsupported, "this build cannot run " + std::string(choice.kernel->name));
}

void OnHost::copy(void* to, const void* from, std::size_t bytes, void* stream) const {
  if (library_)
    cuda::check("copy", library_->copy(to, from, bytes, stream));
  else
    std::memcpy(to, from, bytes);
}

void OnHost::wait(void* stream) const {
  if (library_) cuda::check("synchronize", library_->synchronize(stream));
}

void OnHost::run(Invocation& call) const {
  if (call.inputs() != constants_.size()) throw Error(ErrorKind::invalid_input, "wrong number of inputs");
  if (library_) cuda::refuse_capture(*library_, call.stream(), "what runs on the host, between copies");
  Operands operands(*this, call);
  implementation_->run(operands);
  operands.store();
}

}  // namespace modelflow::ort
