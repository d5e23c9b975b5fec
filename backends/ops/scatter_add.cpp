// The fused op ScatterAdd: rows added to those rows of a table that indices name (torch.Tensor.scatter_add_ with an
// index for whole rows; message passing of graph networks).
#include "backends/call_attrs.h"
#include "backends/ops/fits.h"
#include "backends/ops/sample_weights.h"

namespace modelflow::ops {
namespace {

std::vector<std::string> inputs(const Call&) { return {"data", "indices", "updates"}; }

std::string body(const Call&, int opset) {
  if (opset < 16)
    throw Error(ErrorKind::unsupported, "ScatterAdd needs opset 16, the model has " + std::to_string(opset));
  return "{\nextents = Shape (updates)\nrows = Expand (indices, extents)\n"
         "y = ScatterElements <axis = 0, reduction = \"add\"> (data, rows, updates)\n}";
}

Verdict infer(Call& call) {
  const Shape &data = call.in(0).shape, &updates = call.in(2).shape;
  const DType type = call.in(1).dtype;
  if (type != DType::i64 && type != DType::i32 && type != DType::undefined)
    return no("is neither int32 nor int64", call.in(1).name);
  if (data.has_rank()) {
    if (data.rank() == 0) return no("has no rows", call.in(0).name);
    std::vector<Dim> row = data.dims(), one(data.rank(), Dim(1));
    row[0] = one[0] = updates.has_rank() && updates.rank() > 0 ? updates[0] : Dim();
    if (Verdict v = fits(call.in(2), row); !v) return v;
    const Shape& indices = call.in(1).shape;  // one for all rows, or one for each
    if (indices.has_rank() && indices.rank() > 0 && indices[0].number() == 1) one[0] = Dim(1);
    if (Verdict v = fits(call.in(1), one); !v) return v;
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = float_type(call);
  call.outputs[0].shape = data;
  return yes();
}

/// ONNX Runtime takes 9 ns (rows of 16) to 30 ns (rows of 128) for an element of the updates (1.31, Zen 3), as long as
/// it takes to move so many bytes at 10 GB/s; and it spreads the indices before.
double plain_bytes(const Call& call) { return 100 * call.in(2).shape.known_elements(); }

/// Of each table, its rows are named from both ends, some again and again.
Tensor indices_of(std::int64_t count, std::size_t rank, std::int64_t rows) {
  Dims dims(rank, 1);
  dims[0] = count;
  return Tensor::make(DType::i64, dims, [&](std::byte* bytes) {
    for (std::int64_t i = 0; i < count; ++i)
      reinterpret_cast<std::int64_t*>(bytes)[i] = (i * i * 5 + 3) % (2 * rows) - rows;
  });
}

struct Sample {
  Dims data;
  std::int64_t updates, indices;
};

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    for (const Sample& s : std::initializer_list<Sample>{{{300, 128}, 2300, 2300},
                                                         {{7, 5}, 33, 33},
                                                         {{40}, 100, 100},
                                                         {{3, 2, 17}, 20, 20},
                                                         {{5, 8}, 4, 1},
                                                         {{6, 9}, 0, 0},
                                                         {{4, 0}, 3, 3},
                                                         {{400, 3}, 1000, 1000},
                                                         {{3, 150}, 7, 7}}) {
      Dims updates = s.data;
      updates[0] = s.updates;
      all.weights.push_back(indices_of(s.indices, s.data.size(), s.data[0]));
      Call call{"ScatterAdd", {}, {}, {}};
      call.inputs = {all.operand("data", s.data), constant_operand("indices", all.weights.back()),
                     all.operand("updates", updates)};
      call.outputs = {all.operand("y", s.data)};
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp scatter_add_op = {
    .kind = "ScatterAdd",
    .doc = "The rows of data, and to those that indices name the rows of updates added, one behind the other.",
    .names = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .input_types = {DType::f32, DType::undefined, DType::f32},
    .body = body,
    .inputs = inputs,
    .attributes = [](const Call&, int) { return std::vector<std::string>(); },
    .infer = infer,
    .samples = samples,
    .plain_bytes = plain_bytes,
};

}  // namespace modelflow::ops
