// Verdicts, and the operands of a call.
#include <string>

#include "modelflow/kernel.h"

namespace modelflow {

Verdict no(std::string_view reason, std::string_view value) {
  Verdict verdict{.ok = false, .reason = {}};
  if (!value.empty()) verdict.reason = "'" + std::string(value) + "': ";
  verdict.reason += reason;
  return verdict;
}

const Operand& Call::in(std::size_t i) const {
  if (i < inputs.size()) return inputs[i];
  throw Error(ErrorKind::internal, "the call of " + op + " has " + std::to_string(inputs.size()) + " inputs, number " +
                                       std::to_string(i) + " was asked for");
}

}  // namespace modelflow
