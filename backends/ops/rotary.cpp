// The fused op Rotary: rotary position embedding.
#include <optional>

#include "backends/call_attrs.h"
#include "backends/ops/read_attrs.h"
#include "backends/ops/rotary_attrs.h"
#include "backends/ops/sample_weights.h"
#include "backends/ops/words.h"

namespace modelflow::ops {

RotaryAttrs::RotaryAttrs(const CallAttrs& attrs)
    : heads(attrs.integer("num_heads")),
      head_dim(attrs.integer("head_dim")),
      interleaved(attrs.flag("interleaved")),
      half_width(attrs.flag("half_width")),
      partial(attrs.flag("partial")) {
  flat = word(attrs, "x_layout", {"BSH", "BNSH"}) == "BSH";
  if (head_dim < 0) throw Error(ErrorKind::invalid_input, "the size of a head is negative");
  if (heads < 1) throw Error(ErrorKind::invalid_input, "there are " + std::to_string(heads) + " heads");
}

namespace {

std::vector<std::string> inputs(const Call&) { return {"x", "cos", "sin"}; }

std::vector<std::string> attributes(const Call& call, int) {
  const RotaryAttrs rotary(call);
  if (!rotary.flat) return {};
  if (rotary.head_dim == 0) return {"num_heads"};
  return {"num_heads", "head_dim"};
}

/// x as [batch, heads, sequence, size].
Verdict read_heads(const Operand& x, const RotaryAttrs& rotary, std::vector<Dim>& dims) {
  if (x.shape.rank() != (rotary.flat ? 3u : 4u))
    return no(rotary.flat ? "is not of rank 3" : "is not of rank 4", x.name);
  dims = x.shape.dims();
  if (!rotary.flat) return yes();
  const Dim size = dims[2].divided_by(Dim(rotary.heads));
  if (dims[2].known() && size.unknown())
    return no(dims[2].str() + " channels do not divide into " + std::to_string(rotary.heads) + " heads", x.name);
  dims = {dims[0], Dim(rotary.heads), dims[1], size};
  return yes();
}

/// cos or sin over the heads: its extents are theirs or 1, but for the last.
Verdict check_angles(const Operand& angles, const std::vector<Dim>& dims, const RotaryAttrs& rotary) {
  if (!angles.shape.has_rank()) return yes();
  const std::size_t rank = angles.shape.rank();
  if (rank < 1 || rank > 4) return no("is not of rank 1 to 4", angles.name);
  for (std::size_t i = 0; i + 1 < rank; ++i) {
    const Dim &dim = angles.shape[i], &wanted = dims[4 - rank + i];
    if (dim.known() && dim.value() != 1 && wanted.known() && !(dim == wanted))
      return no("is " + angles.shape.str() + " and does not fit x", angles.name);
  }
  const Dim& width = angles.shape.back();
  if (!width.known()) return yes();
  const std::int64_t covered = width.value() * (rotary.half_width ? 2 : 1);
  if (covered < 1 || covered % 2 != 0) return no("covers an odd number of elements", angles.name);
  if (!dims[3].known()) return yes();
  const bool fits = rotary.partial ? covered <= dims[3].value() : covered == dims[3].value();
  return fits ? yes() : no("covers " + std::to_string(covered) + " of " + dims[3].str() + " elements", angles.name);
}

Verdict infer(Call& call) {
  Verdict why;
  const std::optional<RotaryAttrs> rotary = read_attrs<RotaryAttrs>(call, why);
  if (!rotary) return why;
  const Operand& x = call.in(0);
  if (x.shape.has_rank()) {
    std::vector<Dim> dims;
    if (Verdict v = read_heads(x, *rotary, dims); !v) return v;
    for (const std::size_t i : {1, 2})
      if (Verdict v = check_angles(call.in(i), dims, *rotary); !v) return v;
    const Shape &cos = call.in(1).shape, &sin = call.in(2).shape;
    if (cos.has_rank() && sin.has_rank() && cos.back().known() && sin.back().known() && !(cos.back() == sin.back()))
      return no("cos and sin differ in width", call.in(2).name);
    if (rotary->flat && dims[3].known()) call.attrs.set("head_dim", dims[3].value());
  }
  call.outputs.resize(1);
  call.outputs[0].dtype = x.dtype;
  call.outputs[0].shape = x.shape;
  return yes();
}

struct Sample {
  Dims x, angles;
  std::int64_t heads = 1;
  bool flat = false, interleaved = false, half_width = false, partial = false;
  Dims sin = {};  ///< where they are others than those of cos
};

std::vector<Call> samples() {
  static const Samples made = [] {
    Samples all;
    for (const Sample& s : std::initializer_list<Sample>{
             {{1, 4, 16, 64}, {1, 1, 16, 64}},
             {{2, 3, 7, 10}, {2, 1, 7, 10}},
             {{1, 16, 256}, {1, 1, 16, 64}, 4, true},
             {{2, 5, 30}, {5, 10}, 3, true},
             {{2, 3, 9, 80}, {9, 40}, 1, false, false, true},
             {{2, 1, 9, 44}, {2, 1, 9, 16}, 1, false, false, false, true},
             {{1, 9, 132}, {1, 1, 9, 8}, 3, true, false, true, true},
             {{2, 4, 11, 64}, {1, 1, 11, 64}, 1, false, true},
             {{1, 2, 3, 14}, {3, 14}, 1, false, true},
             {{2, 6, 96}, {2, 1, 6, 16}, 3, true, true, true},
             {{1, 4, 1, 40}, {1, 1, 1, 24}, 1, false, true, false, true},
             {{2, 3, 5, 12}, {12}},
             {{2, 3, 5, 12}, {3, 1, 12}},
             {{0, 3, 5, 12}, {5, 12}},
             {{2, 0, 36}, {1, 1, 0, 12}, 3, true, true},
             {{2, 3, 5, 12}, {2, 1, 5, 12}, 1, false, false, false, false, {5, 12}},
             {{2, 5, 36}, {3, 1, 12}, 3, true, true, false, false, {2, 1, 5, 12}},
         }) {
      Call call{"Rotary", {}, {}, {}};
      call.attrs.set("num_heads", s.heads).set("x_layout", s.flat ? "BSH" : "BNSH");
      call.attrs.set("interleaved", s.interleaved ? 1 : 0).set("half_width", s.half_width ? 1 : 0);
      call.attrs.set("partial", s.partial ? 1 : 0);
      call.inputs = {all.operand("x", s.x), all.operand("cos", s.angles),
                     all.operand("sin", s.sin.empty() ? s.angles : s.sin)};
      call.outputs = {all.operand("y", s.x)};
      all.calls.push_back(std::move(call));
    }
    return all;
  }();
  return made.calls;
}

}  // namespace

extern const FusedOp rotary_op = {
    .kind = "Rotary",
    .doc = "Rotary position embedding: pairs of elements of each head turned by the angles of their row.",
    .names = 1,
    .min_inputs = 3,
    .max_inputs = 3,
    .input_types = {DType::f32},
    .body = rotary_body,
    .inputs = inputs,
    .attributes = attributes,
    .infer = infer,
    .samples = samples,
    .defaults = {{"num_heads", std::int64_t{1}},
                 {"head_dim", std::int64_t{0}},
                 {"x_layout", std::string("BNSH")},
                 {"interleaved", std::int64_t{0}},
                 {"half_width", std::int64_t{0}},
                 {"partial", std::int64_t{0}}},
    .in_place = true,
};

}  // namespace modelflow::ops
