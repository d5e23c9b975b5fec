// Reads and checks the attributes of LSTM and GRU, and their shape rule.
#include "backends/ops/recurrent_attrs.h"

#include <algorithm>
#include <optional>

#include "backends/ops/fits.h"
#include "backends/ops/words.h"

namespace modelflow::ops {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::invalid_input, message); }

/// Of words with blanks between them.
bool contains(const std::string& list, const std::string& word) {
  return (" " + list + " ").find(" " + word + " ") != std::string::npos;
}

/// What is known about the extents of one call.
struct Extents {
  Dim seq, batch, input;
};

Verdict check_operands(const Call& call, const RecurrentAttrs& attrs, const Extents& e) {
  const Dim dirs(attrs.dirs()), hidden(attrs.hidden), rows(attrs.gates() * attrs.hidden);
  if (Verdict v = fits(call.in(1), {dirs, rows, e.input}); !v) return v;
  if (Verdict v = fits(call.in(2), {dirs, rows, hidden}); !v) return v;
  for (std::size_t i = 3; i < attrs.bias_index(); ++i)
    if (Verdict v = fits(call.in(i), {dirs, rows}); !v) return v;
  if (attrs.has_bias)
    if (Verdict v = fits(call.in(attrs.bias_index()), {dirs, Dim(2 * attrs.gates() * attrs.hidden)}); !v) return v;
  if (attrs.has_lengths)
    if (Verdict v = fits(call.in(attrs.lengths_index()), {e.batch}); !v) return v;
  for (std::size_t i = attrs.state_index(); i < call.inputs.size(); ++i)
    if (Verdict v = fits(call.in(i), {dirs, e.batch, hidden}); !v) return v;
  return yes();
}

}  // namespace

RecurrentAttrs::RecurrentAttrs(const Call& call)
    : lstm(call.op.ends_with("LSTM")),
      quantized(call.op.starts_with("Q")),
      has_bias(CallAttrs(call).flag("has_bias")),
      has_lengths(CallAttrs(call).flag("has_lengths")),
      has_state(CallAttrs(call).flag("has_state")),
      linear_before_reset(!lstm && CallAttrs(call).flag("linear_before_reset")),
      y_layout(word(call, "y_layout", {"SDBH", "SBDH", "BSDH", "SBH", "BSH"})),
      clip(CallAttrs(call).number("clip")),
      hidden(CallAttrs(call).integer("hidden_size")) {
  const std::string direction = word(call, "direction", {"forward", "reverse", "bidirectional"});
  const std::string outputs = lstm
                                  ? word(call, "outputs", {"Y", "Y_h", "Y_c", "Y Y_h", "Y Y_c", "Y_h Y_c", "Y Y_h Y_c"})
                                  : word(call, "outputs", {"Y", "Y_h", "Y Y_h"});
  reverse = direction == "reverse";
  bidirectional = direction == "bidirectional";
  x_batch_first = word(call, "x_layout", {"SBI", "BSI"}) == "BSI";
  y = contains(outputs, "Y");
  y_h = contains(outputs, "Y_h");
  y_c = contains(outputs, "Y_c");
  constexpr std::int64_t kMost = 1 << 24;  // far beyond what fits into memory; products with it fit into 64 bits
  if (hidden < 1 || hidden > kMost) fail("hidden_size is " + std::to_string(hidden));
  if (!(clip >= 0)) fail("clip is negative");
}

std::size_t RecurrentAttrs::inputs() const { return state_index() + (has_state ? (lstm ? 2 : 1) : 0); }

Verdict infer_recurrent(Call& call) {
  std::optional<RecurrentAttrs> read;
  try {
    read.emplace(call);
  } catch (const Error& error) {
    return no(error.what());
  }
  if (call.inputs.size() != read->inputs())
    return no("the attributes ask for " + std::to_string(read->inputs()) + " inputs");
  Extents e;
  if (const Shape& x = call.in(0).shape; x.has_rank()) {
    if (x.rank() != 3) return no("is not of rank 3", call.in(0).name);
    e = {x[read->x_batch_first ? 1 : 0], x[read->x_batch_first ? 0 : 1], x[2]};
  }
  if (Verdict v = check_operands(call, *read, e); !v) return v;
  const Dim dirs(read->dirs()), hidden(read->hidden);
  call.outputs.resize(read->outputs());
  for (Operand& output : call.outputs) {
    output.dtype = float_type(call);
    output.shape = Shape({dirs, e.batch, hidden});
  }
  if (!read->y) return yes();
  std::vector<Dim> dims = {e.seq, e.batch, dirs, hidden};
  if (read->y_layout == "SDBH") dims = {e.seq, dirs, e.batch, hidden};
  if (read->y_batch_first()) std::swap(dims[0], dims[1]);
  if (read->y_joined()) dims = {dims[0], dims[1], dirs * hidden};
  call.outputs[0].shape = Shape(std::move(dims));
  return yes();
}

}  // namespace modelflow::ops
