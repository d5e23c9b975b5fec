// MatMul on a GPU: 16-bit numbers on tensor cores, float32 in plain arithmetic; weights stay where the session has
// them.
#include <algorithm>

#include "backends/cuda/epilogue.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/matmul_attrs.h"

namespace modelflow::cuda {
namespace {

using ops::MatMulAttrs;

constexpr const char* kOp = "MatMul";

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + message);
}

class MatMul : public Implementation {
 public:
  MatMul(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call), activation_(activation_of(call)) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    MatMulLaunch g = {};
    g.number = shared_number(kOp, call);
    const Dims y = read(call, g);
    g.epilogue = epilogue_of(kOp, call, attrs_, activation_, g.n, y);
    g.epilogue.scale = attrs_.scale;
    g.y = call.output(0, y);
    if (element_count(y) == 0) return;
    g.tensor_cores = g.number != Number::f32 && target_.sm >= kTensorCores;
    g.large = large_tiles(g.m, g.n, g.products, target_);
    check(kOp, library_.matmul(g, call.stream()));
  }

 private:
  /// Extents, and where the matrices of each product begin. All rows of a are one product where b is one matrix and no
  /// bias tells rows of different matrices apart.
  Dims read(const Invocation& call, MatMulLaunch& g) const {
    const View a = call.input(0), b = call.input(1);
    if (a.dims.size() < 2 || b.dims.size() < 2) fail("rank below 2");
    const std::size_t ra = a.dims.size(), rb = b.dims.size();
    g.m = a.dims[ra - 2 + attrs_.trans_a];
    g.k = a.dims[ra - 1 - attrs_.trans_a];
    g.n = b.dims[rb - 1 - attrs_.trans_b];
    if (b.dims[rb - 2 + attrs_.trans_b] != g.k) fail("inner dims of a and b differ");
    const Broadcast batches(kOp, {a.dims.first(ra - 2), b.dims.first(rb - 2)});
    Dims y = batches.dims();
    y.insert(y.end(), {g.m, g.n});
    g.products = static_cast<std::int64_t>(batches.elements());
    g.batches = places_of(kOp, batches, 2);
    if (element_count(b.dims.first(rb - 2)) == 1 && !attrs_.trans_a && !attrs_.row_bias) {
      g.m *= g.products;
      g.products = std::min<std::int64_t>(g.products, 1);
    }
    g.trans_a = attrs_.trans_a;
    g.trans_b = attrs_.trans_b;
    g.a = a.data;
    g.b = b.data;
    return y;
  }

  const DeviceLibrary& library_;
  Target target_;
  MatMulAttrs attrs_;
  ActivationSpec activation_;
};

Verdict accepts(const Call& call, const Target&) {
  if (Verdict verdict = accepts_numbers(call); !verdict) return verdict;
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  for (std::size_t i = 0; i < 2; ++i)
    if (!call.in(i).shape.has_rank()) return no("its rank is unknown", call.in(i).name);
  return yes();
}

}  // namespace

const Kernel matmul = {
    .op = "MatMul",
    .name = "cuda.matmul",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = product_seconds,
    .create = create<MatMul>,
};

}  // namespace modelflow::cuda
