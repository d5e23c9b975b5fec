// Reads the attributes of a call, or says why they contradict each other.
#pragma once

#include <optional>
#include <string>

#include "modelflow/kernel.h"

namespace modelflow::ops {

/// The attributes of a call as T reads them; nothing, with the reason in `why`, when they contradict each other or ask
/// for another number of inputs than the call has.
template <class T>
std::optional<T> read_attrs(const Call& call, Verdict& why) {
  std::optional<T> read;
  try {
    read.emplace(call);
  } catch (const Error& error) {
    why = no(error.what());
    return {};
  }
  if (call.inputs.size() == read->inputs()) return read;
  why = no("the attributes ask for " + std::to_string(read->inputs()) + " inputs");
  return {};
}

}  // namespace modelflow::ops
