// MatMulNBits on a GPU: weights stay in 4 or 8 bits in memory and become floats on their way to the tensor cores, or to
// the registers of a warp where a has few rows.
#include <algorithm>
#include <cmath>

#include "backends/cuda/epilogue.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/work.h"
#include "backends/ops/matmul_nbits_attrs.h"

namespace modelflow::cuda {
namespace {

using ops::MatMulNBitsAttrs;

constexpr const char* kOp = "MatMulNBits";

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + message);
}

class MatMulNBits : public Implementation {
 public:
  MatMulNBits(const Call& call, const DeviceLibrary& library, const Target& target)
      : library_(library), target_(target), attrs_(call), activation_(activation_of(call)) {}

  void run(Invocation& call) const override {
    if (call.inputs() != attrs_.inputs()) fail("takes " + std::to_string(attrs_.inputs()) + " inputs");
    MatMulNBitsLaunch g = {};
    const Dims y = read(call, g);
    g.epilogue = epilogue_of(kOp, call, attrs_, activation_, g.n, y);
    g.y = call.output(0, y);
    if (element_count(y) == 0) return;
    g.tensor_cores = g.number != Number::f32 && target_.sm >= kTensorCores;
    g.large = large_tiles(g.m, g.n, 1, target_);
    check(kOp, library_.matmul_nbits(g, call.stream()));
  }

 private:
  Dims read(const Invocation& call, MatMulNBitsLaunch& g) const {
    const View a = call.input(0), b = call.input(1), scale = call.input(2);
    const std::optional<Number> number = number_of(a.dtype);
    for (std::size_t i = 0; i < call.inputs(); ++i)
      if (!number || call.input(i).dtype != (i == 1 ? DType::u8 : a.dtype)) fail("inputs are not of the right types");
    if (a.dims.size() < 2 || b.dims.size() != 3) fail("a is not of rank 2 or more, or b not of rank 3");
    g.number = *number;
    g.n = b.dims[0];
    g.k = b.dims[1] * attrs_.block;
    if (b.dims[2] != attrs_.bytes() || a.dims.back() != g.k) fail("inner dims of a and b differ");
    if (!std::ranges::equal(scale.dims, b.dims.first(2))) fail("there is not one scale for each block of b");
    g.a = a.data;
    g.b = static_cast<const std::uint8_t*>(b.data);
    g.scale = scale.data;
    g.bits = static_cast<std::int32_t>(attrs_.bits);
    g.block = static_cast<std::int32_t>(attrs_.block);
    Dims y(a.dims.begin(), a.dims.end());
    g.m = element_count(std::span(y).first(y.size() - 1));
    y.back() = g.n;
    return y;
  }

  const DeviceLibrary& library_;
  Target target_;
  MatMulNBitsAttrs attrs_;
  ActivationSpec activation_;
};

Verdict accepts(const Call& call, const Target&) {
  Call known = call;
  if (Verdict v = find_fused_op(kOp)->infer(known); !v) return v;
  if (call.in(1).dtype != DType::u8) return no("is not uint8", call.in(1).name);
  Call floats = call;
  floats.inputs.erase(floats.inputs.begin() + 1);
  if (Verdict v = accepts_numbers(floats); !v) return v;
  return call.in(0).shape.has_rank() ? yes() : no("its rank is unknown", call.in(0).name);
}

/// Every tile of rows makes floats of all weights once more.
double cost(const Call& call, const Target& target) {
  constexpr double kTileRows = 64, kEach = 4;  // kEach: to cut a step out, center, convert and scale it
  const double columns = static_cast<double>(call.in(1).shape[0].number().value_or(1));
  const double rows = call.outputs.at(0).shape.known_elements() / std::max(columns, 1.0);
  const double weights = call.in(1).shape.known_elements() * 8 / static_cast<double>(MatMulNBitsAttrs(call).bits);
  return product_seconds_in(call.in(0).dtype, kEach * weights * std::ceil(rows / kTileRows), call, target);
}

}  // namespace

const Kernel matmul_nbits = {
    .op = "MatMulNBits",
    .name = "cuda.matmul_nbits",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<MatMulNBits>,
};

}  // namespace modelflow::cuda
