// ScatterAdd on a GPU: sums in float32 whatever is added, as each of many would be rounded.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/ops/work.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "ScatterAdd";
constexpr double kForever = std::numeric_limits<double>::infinity();  ///< launches
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what); }

/// Where rows look for their updates, each in a warp, which reads all indices from the caches once for every 128
/// columns, and adds up what it finds one after the other. How many launches take as long.
double launches_to_look(double rows, double width, double updates, const Target& target) {
  constexpr double kPairs = 1 << 16;  // that a multiprocessor compares in the meantime. Not measured on a device yet.
  constexpr double kInTurn = 64;      // additions of a row: more than that wait for each other
  if (updates > kInTurn * rows) return kForever;
  const double busy = std::min(static_cast<double>(target.cores), std::ceil(rows / 8));
  return rows * updates * std::ceil(width / 128) / (kPairs * busy);
}

class ScatterAdd : public Implementation {
 public:
  ScatterAdd(const Call&, const DeviceLibrary& library, const Target& target) : library_(library), target_(target) {}

  void run(Invocation& call) const override {
    if (call.inputs() != 3) fail("wrong number of inputs");
    const View data = call.input(0), updates = call.input(2);
    const std::optional<Number> number = number_of(data.dtype);
    if (!number || updates.dtype != data.dtype) fail("data and updates are not floats of one type");
    if (data.dims.empty() || updates.dims.size() != data.dims.size() ||
        !std::ranges::equal(data.dims.subspan(1), updates.dims.subspan(1)))
      fail("updates are no rows of data");
    ScatterAddLaunch a = {};
    a.number = *number;
    a.rows = data.dims[0], a.width = element_count(data.dims.subspan(1)), a.updates = updates.dims[0];
    read_indices(call.input(1), a);
    a.data = data.data, a.update = updates.data;
    a.y = call.output(0, data.dims);
    if (a.rows * a.width == 0) return;
    const auto bytes = static_cast<std::size_t>(a.rows * a.width) * sizeof(float);
    const double looking = launches_to_look(static_cast<double>(a.rows), static_cast<double>(a.width),
                                            static_cast<double>(a.updates), target_);
    if (looking > 1 || (a.single && a.updates > 1))
      a.sums = static_cast<float*>(a.number == Number::f32 ? a.y : call.scratch(bytes));
    check(kOp, library_.scatter_add(a, call.stream()));
  }

 private:
  /// One index for each update, or one for all.
  static void read_indices(const View& indices, ScatterAddLaunch& a) {
    const std::int64_t count = element_count(indices.dims);
    if (indices.dtype != DType::i64 && indices.dtype != DType::i32) fail("indices are neither int32 nor int64");
    if (indices.dims.empty() || count != indices.dims[0]) fail("an index is not for a whole row");
    if (count != a.updates && count != 1) fail("the indices are not as many as the updates");
    a.indices = indices.data;
    a.narrow = indices.dtype == DType::i32;
    a.single = count == 1;
  }

  const DeviceLibrary& library_;
  Target target_;
};

Verdict accepts(const Call& call, const Target&) {
  const DType type = call.in(1).dtype;
  if (type != DType::i64 && type != DType::i32) return no("is neither int32 nor int64", call.in(1).name);
  if (!number_of(call.in(0).dtype)) return no("is not float32, float16 or bfloat16", call.in(0).name);
  return call.in(2).dtype == call.in(0).dtype ? yes() : no("is of another type than data", call.in(2).name);
}

/// One launch that moves operands, or data copied, by way of float32 where it is narrower, and then additions, each of
/// which reads and writes a number in the second cache.
double cost(const Call& call, const Target& target) {
  const Operand &data = call.in(0), &updates = call.in(2);
  const double rows = ops::first_extent(data.shape), width = data.shape.known_elements() / std::max(rows, 1.0);
  const double looking = launches_to_look(rows, width, ops::first_extent(updates.shape), target);
  if (looking <= 1) return (1 + looking) * target.launch + target.stream(operand_bytes(call));
  const bool narrow = data.dtype != DType::f32;
  const double sums = 2 * sizeof(float) * updates.shape.known_elements() / (target.l2_bandwidth * target.cores);
  const double between = narrow ? 2 * sizeof(float) * data.shape.known_elements() : 0;
  return (narrow ? 3 : 2) * target.launch + target.stream(operand_bytes(call) + between) + sums;
}

}  // namespace

const Kernel scatter_add = {
    .op = kOp,
    .name = "cuda.scatter_add",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<ScatterAdd>,
};

}  // namespace modelflow::cuda
