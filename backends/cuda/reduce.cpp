// Reductions with the elementwise ops around them on a GPU.
#include <algorithm>
#include <numeric>

#include "backends/cuda/kernels.h"
#include "backends/cuda/places.h"
#include "backends/cuda/program.h"
#include "backends/ops/reduce_attrs.h"

namespace modelflow::cuda {
namespace {

constexpr const char* kOp = "Reduce";
[[noreturn]] void fail(const char* what) { throw Error(ErrorKind::invalid_input, std::string("Reduce: ") + what); }

std::int64_t product(const Dims& dims, std::size_t from, std::size_t to) {
  return element_count(std::span(dims).subspan(from, to - from));
}

class Reduce : public Implementation {
 public:
  Reduce(const Call& call, const DeviceLibrary& library)
      : library_(library),
        inputs_(call.inputs.size()),
        reduce_(call, inputs_),
        reads_before_(reduce_.reads_before(inputs_)),
        reads_behind_(reduce_.reads_behind(inputs_)),
        before_(device_program(reduce_.before(), reduce_.source().index)),
        behind_(device_program(reduce_.behind(inputs_, reduce_.line), inputs_)) {}

  void run(Invocation& call) const override {
    if (call.inputs() != inputs_) fail("wrong number of inputs");
    ReduceLaunch launch = {};
    launch.number = shared_number(kOp, call);
    launch.inputs = static_cast<std::int32_t>(inputs_);
    const Dims none;
    std::vector<std::span<const std::int64_t>> before(inputs_, none), behind(inputs_ + 1, none);
    for (std::size_t i = 0; i < inputs_; ++i) {
      launch.x[i] = call.input(i).data;
      if (reads_before_[i]) before[i] = call.input(i).dims;
      if (reads_behind_[i]) behind[i] = call.input(i).dims;
    }
    const Broadcast whole(kOp, before);
    const Dims rest = reduced(whole.dims(), launch);
    behind[inputs_] = rest;
    const Broadcast result(kOp, behind);
    launch.full = reduce_.keepdims && result.dims() == whole.dims() && result.dims() != rest;
    if (!launch.full && result.dims() != rest) fail("the result is neither of the reduced shape nor of the whole one");
    launch.before_places = places_of(kOp, whole, inputs_);
    launch.behind_places = places_of(kOp, result, inputs_ + 1);
    launch.before = before_;
    launch.behind = behind_;
    describe(launch);
    launch.y = call.output(0, result.dims());
    if (result.elements() > 0) check(kOp, library_.reduce(launch, call.stream()));
  }

 private:
  /// What is left of these extents; outer, n and inner.
  Dims reduced(const Dims& all, ReduceLaunch& launch) const {
    if (all.size() < reduce_.from_end) fail("the reduced axes lie outside");
    const std::size_t first = all.size() - reduce_.from_end, end = first + reduce_.axes;
    launch.outer = product(all, 0, first);
    launch.n = product(all, first, end);
    launch.inner = product(all, end, all.size());
    Dims rest = all;
    const auto from = rest.begin() + static_cast<std::ptrdiff_t>(first),
               to = rest.begin() + static_cast<std::ptrdiff_t>(end);
    if (reduce_.keepdims)
      std::fill(from, to, 1);
    else
      rest.erase(from, to);
    return rest;
  }

  void describe(ReduceLaunch& launch) const {
    const std::string& op = reduce_.op();
    launch.join = op == "ReduceMax" ? Join::max : op == "ReduceMin" ? Join::min : Join::sum;
    launch.squares = op == "ReduceL2" || op == "ReduceSumSquare";
    launch.mean = op == "ReduceMean";
    launch.root = op == "ReduceL2";
  }

  const DeviceLibrary& library_;
  std::size_t inputs_;
  ops::ReduceAttrs reduce_;
  std::vector<bool> reads_before_, reads_behind_;
  Program before_, behind_;
};

Verdict accepts(const Call& call, const Target&) {
  const std::size_t inputs = call.inputs.size();
  if (inputs == 0 || inputs >= Places::kOperands) return no("takes one to seven inputs");
  try {
    const ops::ReduceAttrs reduce(call, inputs);
    device_program(reduce.before());
    device_program(reduce.behind(inputs, reduce.line));
  } catch (const Error& error) {
    return no(error.what());
  }
  if (Verdict verdict = accepts_axes(call); !verdict) return verdict;
  return accepts_numbers(call);
}

/// A block reduces one row or 32 columns: fewer of them than multiprocessors keep only some of these busy.
double cost(const Call& call, const Target& target) {
  double most = 1;
  for (const Operand& in : call.inputs) most = std::max(most, in.shape.known_elements());
  const ops::ReduceAttrs reduce(call, call.inputs.size());
  const Shape& x = call.in(0).shape;
  double n = 1;
  for (std::size_t i = 0; x.has_rank() && i < reduce.axes && reduce.from_end <= x.rank(); ++i)
    n *= static_cast<double>(x[x.rank() - reduce.from_end + i].number().value_or(1));
  const double lines = most / std::max(n, 1.0) / (reduce.from_end > reduce.axes ? 32 : 1);
  const double busy = std::clamp(lines, 1.0, static_cast<double>(target.cores)) / target.cores;
  return target.launch + target.stream(operand_bytes(call)) / busy;
}

}  // namespace

const Kernel reduce = {
    .op = kOp,
    .name = "cuda.reduce",
    .device = Device::cuda,
    .sm = 75,
    .accepts = accepts,
    .cost = cost,
    .create = create<Reduce>,
};

}  // namespace modelflow::cuda
