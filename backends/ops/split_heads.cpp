// Takes apart heads that lie side by side, in the text of bodies and in extents.
#include "backends/ops/split_heads.h"

namespace modelflow::ops {
namespace {

/// Takes over what `other` says of `dim`; false where the two contradict each other.
bool merge(Dim& dim, const Dim& other) {
  if (dim.known() && other.known() && !(dim == other)) return false;
  if (!dim.known() && !other.unknown() && (dim.unknown() || other.known())) dim = other;
  return true;
}

}  // namespace

std::string head_numbers_text(bool head_dim) {
  const std::string text =
      "one = Constant <value = int64[1] {1}> ()\ntwo = Constant <value = int64[1] {2}> ()\n"
      "copied = Constant <value = int64[2] {0, 0}> ()\nn_number = Constant <value_int: int = @num_heads> ()\n"
      "n = Reshape (n_number, one)\n";
  if (!head_dim) return text;
  return text +
         "head_dim_number = Constant <value_int: int = @head_dim> ()\nhead_dim = Reshape (head_dim_number, one)\n";
}

std::string split_heads_text(const std::string& x, const std::string& count, std::string size) {
  std::string text;
  if (size.empty()) {
    size = x + "_size";
    text = x + "_shape = Shape (" + x + ")\n" + x + "_width = Gather <axis = 0> (" + x + "_shape, two)\n" + size +
           " = Div (" + x + "_width, " + count + ")\n";
  }
  return text + x + "_target = Concat <axis = 0> (copied, " + count + ", " + size + ")\n" + x + "_split = Reshape (" +
         x + ", " + x + "_target)\n";
}

Verdict join_extents(const Operand& x, std::int64_t heads, HeadExtents& extents) {
  if (!x.shape.has_rank()) return yes();
  if (x.shape.rank() != 3) return no("is not of rank 3", x.name);
  const Dim found = x.shape[2].divided_by(Dim(heads));
  if (x.shape[2].known() && found.unknown())
    return no(x.shape[2].str() + " channels do not divide into " + std::to_string(heads) + " heads", x.name);
  const bool fits = merge(extents.batch, x.shape[0]) && merge(extents.tokens, x.shape[1]) && merge(extents.size, found);
  return fits ? yes() : no("is " + x.shape.str() + " and does not fit the others", x.name);
}

HeadSizes head_sizes(const std::string& op, const Invocation& call, std::int64_t heads, bool packed) {
  const auto fail = [&](const char* what) { throw Error(ErrorKind::invalid_input, op + ": " + what); };
  const View x = call.input(0);
  if (x.dims.size() != 3) fail("an operand is not of rank 3");
  for (std::size_t i = 1; !packed && i < 3; ++i)
    if (!std::ranges::equal(call.input(i).dims, x.dims)) fail("queries, keys and values differ in their extents");
  const std::int64_t all = heads * (packed ? 3 : 1);
  if (x.dims[2] % all != 0) fail("the channels do not divide into the heads");
  return {x.dims[0], x.dims[1], x.dims[2], x.dims[2] / all};
}

}  // namespace modelflow::ops
