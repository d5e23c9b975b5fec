// What a fuzz target may do with its input.
#pragma once

#include <cstdlib>
#include <new>

#include "modelflow/error.h"

namespace modelflow::fuzz {

/// Runs `body`; a refusal is fine, a bug of ours ends the process with the message on stderr.
template <class Body>
bool taken(const Body& body) {
  try {
    body();
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;  // libFuzzer and the test report it with what()
  } catch (const std::bad_alloc&) {
  }
  return false;
}

/// A property that holds for all input.
inline void holds(bool property, const char* what) {
  if (!property) throw Error(ErrorKind::internal, what);
}

}  // namespace modelflow::fuzz
