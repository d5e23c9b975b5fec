// The attributes of a call as its op knows them: the only way in which this room reads them.
#pragma once

#include <string>
#include <string_view>

#include "modelflow/kernel.h"

namespace modelflow {

/// What a call says, else what its op declares (FusedOp::defaults), else what the op declares that this one is another
/// precision of. So no reader has a default of its own; one that asks for what no op has throws Error(internal).
class CallAttrs {
 public:
  CallAttrs(const Call& call) : call_(call) {}  // NOLINT: whoever reads attributes may be given the call

  bool flag(std::string_view name) const { return integer(name) != 0; }
  std::int64_t integer(std::string_view name) const;
  float number(std::string_view name) const;
  std::string text(std::string_view name) const;
  Ints ints(std::string_view name) const;
  Floats floats(std::string_view name) const;

 private:
  const Attrs& holder_of(std::string_view name) const;

  const Call& call_;
};

}  // namespace modelflow
