// Finds who says what an attribute of a call is: the call, its op, or the op that this one is another precision of.
#include "backends/call_attrs.h"

namespace modelflow {

const Attrs& CallAttrs::holder_of(std::string_view name) const {
  if (call_.attrs.has(name)) return call_.attrs;
  const FusedOp* op = find_fused_op(call_.op);
  if (op && !op->defaults.has(name)) op = find_fused_op(op->base);
  if (op && op->defaults.has(name)) return op->defaults;
  throw Error(ErrorKind::internal, call_.op + " has no attribute " + std::string(name));
}

std::int64_t CallAttrs::integer(std::string_view name) const { return holder_of(name).integer(name); }
float CallAttrs::number(std::string_view name) const { return holder_of(name).number(name); }
std::string CallAttrs::text(std::string_view name) const { return holder_of(name).text(name); }
Ints CallAttrs::ints(std::string_view name) const { return holder_of(name).ints(name); }
Floats CallAttrs::floats(std::string_view name) const { return holder_of(name).floats(name); }

}  // namespace modelflow
