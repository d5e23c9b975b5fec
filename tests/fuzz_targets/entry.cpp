// The function that libFuzzer calls; MODELFLOW_FUZZ_TARGET is one of targets.h.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/fuzz_targets/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    modelflow::fuzz::MODELFLOW_FUZZ_TARGET({data, size});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finding: %s\n", error.what());
    std::abort();
  }
  return 0;
}
