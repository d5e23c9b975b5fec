// Calls of fused ops with attributes, types and shapes that no pass would write, and tensors that are not what the call
// said: a kernel refuses them, or reads and writes its own memory only.
#include <algorithm>
#include <array>
#include <map>
#include <new>

#include "backends/host_invocation.h"
#include "modelflow/error.h"
#include "modelflow/kernel.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {
namespace {

/// Decisions out of bytes; zeros behind their end.
class Draw {
 public:
  explicit Draw(Bytes bytes) : bytes_(bytes) {}
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return first;
  }
  std::size_t below(std::size_t bound) { return bound ? (byte() | byte() << 8) % bound : 0; }
  bool rarely() { return byte() > 200; }
  std::int64_t number() {
    constexpr std::array<std::int64_t, 12> kOdd = {0,         -1,        1,         2,         3,     7,
                                                   INT32_MAX, INT64_MAX, INT64_MIN, 1LL << 40, 65536, -65536};
    return byte() & 1 ? kOdd[below(kOdd.size())] : static_cast<std::int64_t>(byte()) - 16;
  }
  Bytes rest() const { return bytes_; }

 private:
  Bytes bytes_;
};

constexpr std::array kTypes = {DType::f32, DType::u8,   DType::i8,  DType::i32,    DType::i64,
                               DType::f16, DType::bf16, DType::f64, DType::boolean};
constexpr std::int64_t kMostElements = 1 << 14;

struct Change {
  Draw& draw;
  void operator()(std::int64_t& number) { number = draw.number(); }
  void operator()(float& number) { number = static_cast<float>(draw.number()); }
  void operator()(std::string& text) {
    if (text.empty() || draw.rarely()) text.push_back(static_cast<char>(draw.byte()));
    text[draw.below(text.size())] = static_cast<char>(draw.byte());
    if (draw.rarely()) text.resize(draw.below(text.size()));
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    if (draw.rarely()) list.resize(draw.below(list.size() + 3));
    if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, float> || std::is_same_v<T, std::string>) {
      if (!list.empty()) (*this)(list[draw.below(list.size())]);
    }
  }
  template <class T>
  void operator()(T&) {}
};

void change_attrs(Call& call, Draw& draw) {
  for (int i = draw.byte() % 4; i > 0; --i) {
    std::size_t skip = draw.below(call.attrs.size());
    for (auto& [name, attr] : call.attrs)
      if (skip-- == 0) std::visit(Change{draw}, attr);
  }
}

/// One extent, or the number of them; what would be too much to compute stays as it was.
Dims changed(Dims dims, Draw& draw) {
  const Dims before = dims;
  if (draw.rarely()) dims.resize(draw.below(7), 1);
  if (!dims.empty()) dims[draw.below(dims.size())] = draw.byte() % 20;
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) elements *= std::max<std::int64_t>(dim, 1);
  return elements > kMostElements ? before : dims;
}

Tensor filled(DType dtype, Dims dims, Draw& draw) {
  const Bytes pattern = draw.rest();
  const std::size_t size = byte_count(dtype, dims);
  return Tensor::make(dtype, std::move(dims), [&](std::byte* out) {
    for (std::size_t i = 0; i < size; ++i)
      out[i] = pattern.empty() ? std::byte{} : std::byte{pattern[i % pattern.size()]};
  });
}

Tensor operand(const Operand& in, Draw& draw) {
  Dims dims = in.shape.values();
  DType dtype = in.dtype;
  if (draw.rarely()) dims = changed(dims, draw);
  if (draw.rarely()) dtype = kTypes[draw.below(kTypes.size())];
  return filled(dtype, std::move(dims), draw);
}

/// Results beyond this are refused as a runtime without memory would.
class SmallInvocation : public HostInvocation {
 public:
  using HostInvocation::HostInvocation;
  void* output(std::size_t i, std::span<const std::int64_t> dims) override {
    constexpr std::int64_t kMostResult = 1 << 22;
    if (element_count(dims) > kMostResult) throw Error(ErrorKind::limit, "a large result");
    return HostInvocation::output(i, dims);
  }
  std::byte* scratch(std::size_t bytes) override {
    constexpr std::size_t kMostScratch = 256 << 20;
    if (bytes > kMostScratch) throw Error(ErrorKind::limit, "much scratch memory");
    return HostInvocation::scratch(bytes);
  }
};

/// The small ones; large ones, too, are filled to be made, so every op's are made when they are first asked for.
const std::vector<Call>& samples_of(const FusedOp& op) {
  static std::map<const FusedOp*, std::vector<Call>> known;
  const auto [at, unseen] = known.try_emplace(&op);
  if (!unseen) return at->second;
  for (Call& call : op.samples()) {
    double elements = 0;
    for (const Operand& in : call.inputs) elements += in.shape.known_elements();
    if (elements <= 4 * kMostElements) at->second.push_back(std::move(call));
  }
  return at->second;
}

/// An attribute or a shape that is not there is asked for with Error(internal), which ends a session as any other does.
template <class Body>
void refusable(const Body& body) {
  try {
    body();
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
}

void run(const Kernel& kernel, const Call& call, const std::vector<Tensor>& operands) {
  static HostThreads threads(1);
  const std::unique_ptr<Implementation> made = kernel.create(call, Target::host());
  if (!made) return;
  SmallInvocation invocation(threads, operands);
  made->run(invocation);
}

}  // namespace

void kernels(Bytes bytes) {
  Draw draw(bytes);
  const std::vector<Call>& samples = samples_of(*fused_ops()[draw.below(fused_ops().size())]);
  if (samples.empty()) return;
  Call call = samples[draw.below(samples.size())];
  change_attrs(call, draw);
  if (draw.rarely() && call.inputs.size() > 1) call.inputs.resize(draw.below(call.inputs.size()));
  std::vector<Tensor> constants;
  constants.reserve(call.inputs.size());
  for (Operand& in : call.inputs) {
    if (draw.rarely()) in.dtype = kTypes[draw.below(kTypes.size())];
    if (draw.rarely() && in.shape.known()) in.shape = Shape::of(changed(in.shape.values(), draw));
    if (in.constant && in.constant->dtype() == in.dtype && in.shape == Shape::of(in.constant->dims())) continue;
    if (!in.constant) continue;
    constants.push_back(filled(in.dtype, in.shape.values(), draw));
    in.constant = &constants.back();
  }
  std::vector<Tensor> operands;
  for (const Operand& in : call.inputs) operands.push_back(in.constant ? *in.constant : operand(in, draw));
  // The described shapes become unknown where the tensors differ from them, as in a model of dynamic axes.
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (!call.inputs[i].constant && draw.byte() & 1)
      call.inputs[i].shape = Shape(std::vector<Dim>(call.inputs[i].shape.rank()));
  // As in the plugin: what an op calls impossible reaches no kernel, but the optimizer asks these all the same.
  bool possible = false;
  refusable([&] { possible = static_cast<bool>(find_fused_op(call.op)->infer(call)); });
  for (const Kernel* kernel : modelflow::kernels()) {
    if (kernel->op != call.op || !kernel->fits(Target::host())) continue;
    refusable([&] {
      if (kernel->accepts(call, Target::host()) && possible) run(*kernel, call, operands);
    });
  }
}

}  // namespace modelflow::fuzz
