// QMatMul on a GPU: rows become steps of 8 bits in scratch memory, which tensor cores multiply with the weights.
#include "backends/cuda/bytes.h"
#include "backends/cuda/epilogue.h"
#include "backends/cuda/filters.h"
#include "backends/cuda/invocation.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/qmatmul_attrs.h"

namespace modelflow::cuda {
namespace {

using ops::QMatMulAttrs;

constexpr const char* kOp = "QMatMul";
constexpr std::int32_t kMiddle = 128;  ///< the zero point of rows with scales of their own

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + message);
}

class QMatMul : public Implementation {
 public:
  QMatMul(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call), activation_(activation_of(call)) {
    const Tensor& b = *call.in(1).constant;
    const Tensor rows = attrs_.trans_b ? b : turned(b, true).reshaped({b.dims()[1], b.dims()[0]});
    n_ = rows.dims()[0];
    k_ = rows.dims()[1];
    b_.push_back(uploaded(library, padded(rows)));
    b_.push_back(uploaded(library, scaled(*call.in(2).constant, attrs_.by_row() ? 1 : attrs_.a_scale)));
    b_.push_back(uploaded(library, shifts(rows, nullptr, attrs_.by_row() ? kMiddle : attrs_.a_zero_point)));
  }

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    const View a = call.input(0);
    const std::optional<Number> number = number_of(a.dtype);
    if (!number || a.dims.size() < 2 || a.dims.back() != k_) fail("a does not fit b");
    Dims y(a.dims.begin(), a.dims.end());
    y.back() = n_;
    QMatMulLaunch g = {};
    g.number = *number;
    g.m = element_count(a.dims.first(a.dims.size() - 1));
    g.n = n_;
    g.epilogue = epilogue_of(kOp, call, attrs_, activation_, n_, y);
    g.y = call.output(0, y);
    if (element_count(y) == 0) return;
    const RowStepsLaunch rows = steps(call, a, g);
    check(kOp, library_.row_steps(rows, call.stream()));
    g.stride = rows.stride;
    g.a = rows.y;
    g.a_scales = rows.scales;
    g.b = static_cast<const std::uint8_t*>(b_[0].data());
    g.b_scales = static_cast<const float*>(b_[1].data());
    g.shift = static_cast<const std::int32_t*>(b_[2].data());
    g.large = large_tiles(g.m, g.n, 1, target_);
    check(kOp, library_.qmatmul(g, call.stream()));
  }

 private:
  RowStepsLaunch steps(Invocation& call, const View& a, const QMatMulLaunch& g) const {
    RowStepsLaunch rows = {g.number, g.m, k_, row_bytes(k_), a.data, nullptr, nullptr, {}};
    rows.y = reinterpret_cast<std::uint8_t*>(call.scratch(static_cast<std::size_t>(g.m * rows.stride)));
    if (attrs_.by_row())
      rows.scales = reinterpret_cast<float*>(call.scratch(static_cast<std::size_t>(g.m) * sizeof(float)));
    else
      rows.known = {attrs_.a_scale, attrs_.a_zero_point};
    return rows;
  }

  const DeviceLibrary& library_;
  Target target_;
  QMatMulAttrs attrs_;
  ActivationSpec activation_;
  std::int64_t n_ = 0, k_ = 0;
  std::vector<DeviceMemory> b_;  ///< weights, their scales, what is added to sums
};

Verdict accepts(const Call& call, const Target&) {
  const QMatMulAttrs attrs(call);
  if (call.inputs.size() != attrs.inputs()) return no("the attributes ask for other inputs");
  if (attrs.per_tensor) return no("has one scale for all of a, which is known at run time only", call.in(0).name);
  if (attrs.has_zero_point) return no("has zero points", call.in(1).name);
  if (Verdict v = accepts_declared_types(call); !v) return v;
  const Operand& b = call.in(1);
  if (b.constant && b.constant->rank() != 2) return no("is no matrix", b.name);
  return accepts_rows(b, attrs.trans_b ? 0 : 1, call.in(2), nullptr);
}

double cost(const Call& call, const Target& target) {
  const double floats = call.in(0).shape.known_elements() * element_bytes(call),
               steps = 2 * call.in(0).shape.known_elements();  // written and read
  return product_seconds_in(DType::i8, 0, call, target) + target.launch + target.stream(floats + steps);
}

}  // namespace

const Kernel qmatmul = {
    .op = kOp,
    .name = "cuda.qmatmul",
    .device = Device::cuda,
    .sm = kTensorCores,
    .accepts = accepts,
    .cost = cost,
    .create = create<QMatMul>,
};

}  // namespace modelflow::cuda
