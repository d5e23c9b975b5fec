// A model from bytes, as text or as protobuf.
#pragma once

#include <string_view>

#include "modelflow/model.h"
#include "tests/fuzz_targets/targets.h"

namespace modelflow::fuzz {

/// A small model, as text where the bytes begin like one, else as a ModelProto.
inline Model model_of(Bytes bytes) {
  const bool text = !bytes.empty() && (bytes[0] == '<' || bytes[0] == '(' || bytes[0] == '#');
  if (text) return Model::from_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  constexpr Limits kSmall = {.max_nodes = 2'000, .max_depth = 20};
  return Model::from_bytes(std::as_bytes(bytes), {}, kSmall);
}

}  // namespace modelflow::fuzz
