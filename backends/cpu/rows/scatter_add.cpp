// ScatterAdd: rows added to those of a table that indices name. Each task has some rows of the table and looks for all
// indices of these, so that sums are those of one thread, in the order of the updates.
#include <algorithm>

#include "backends/cpu/frame/share.h"
#include "backends/cpu/frame/typed_input.h"
#include "backends/cpu/loops/vector_code.h"
#include "backends/cpu/rows/kernels.h"
#include "backends/cpu/rows/row_indices.h"

namespace modelflow::cpu {
namespace {

constexpr const char* kOp = "ScatterAdd";
[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::invalid_input, std::string(kOp) + ": " + what);
}

/// Which row each of the updates is for: one index for each, or one for all.
RowIndices read_indices(const View& indices, std::int64_t rows, std::int64_t updates) {
  const std::int64_t count = element_count(indices.dims);
  const RowIndices read(indices, rows, 0, count == 1 ? 0 : 1);
  if (!read.whole()) fail("indices are neither int32 nor int64");
  if (indices.dims.empty() || count != indices.dims[0]) fail("an index is not for a whole row");
  if (count != updates && count != 1) fail(std::to_string(count) + " indices for " + std::to_string(updates));
  if (const std::string wrong = read.wrong(std::min(count, updates)); !wrong.empty()) fail("index " + wrong);
  return read;
}

class ScatterAdd : public Implementation {
 public:
  explicit ScatterAdd(const VectorCode& code) : code_(code) {}

  void run(Invocation& call) const override {
    if (call.inputs() != 3) fail("wrong number of inputs");
    const std::span<const std::int64_t> dims = call.input(0).dims, of_updates = call.input(2).dims;
    if (dims.empty() || of_updates.size() != dims.size()) fail("data and updates are of different ranks");
    Dims wanted(dims.begin(), dims.end());
    const float* data = typed_input<float>(call, kOp, 0, {wanted});
    wanted[0] = of_updates[0];
    const float* updates = typed_input<float>(call, kOp, 2, {wanted});
    const RowIndices rows = read_indices(call.input(1), dims[0], of_updates[0]);
    auto* y = static_cast<float*>(call.output(0, dims));
    const auto width = static_cast<std::size_t>(element_count(dims.subspan(1)));
    const auto count = static_cast<std::size_t>(dims[0]);
    if (count * width == 0) return;
    const std::size_t elements = (count + static_cast<std::size_t>(of_updates[0])) * width;
    // Each task reads all indices, so there are no more of them than threads.
    share(call, count, std::min({tasks_for(elements, call), call.threads(), count}),
          [&](std::size_t begin, std::size_t end, std::size_t) {
            std::copy_n(data + begin * width, (end - begin) * width, y + begin * width);
            for (std::int64_t i = 0; i < of_updates[0]; ++i) {
              const auto row = static_cast<std::size_t>(rows[i]);
              const float* update = updates + static_cast<std::size_t>(i) * width;
              if (row >= begin && row < end) code_.channels.add_rows(update, 1, width, y + row * width);
            }
          });
  }

 private:
  const VectorCode& code_;
};

Verdict accepts(const Call& call, const Target&) {
  for (const std::size_t i : {0, 2})
    if (call.in(i).dtype != DType::f32) return no("is not float32", call.in(i).name);
  const DType type = call.in(1).dtype;
  return type == DType::i64 || type == DType::i32 ? yes() : no("is neither int32 nor int64", call.in(1).name);
}

double cost(const Call& call, const Target& target) {
  return target.stream(4 * (2 * call.in(0).shape.known_elements() + 3 * call.in(2).shape.known_elements()));
}

}  // namespace

const Kernel scatter_add = {
    .op = "ScatterAdd",
    .name = "cpu.scatter_add",
    .accepts = accepts,
    .cost = cost,
    .create = [](const Call&, const Target& target) -> std::unique_ptr<Implementation> {
      return std::make_unique<ScatterAdd>(vector_code(target));
    },
};

}  // namespace modelflow::cpu
