// The fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// What libFuzzer feeds bytes to, and what tests/found_test.cpp replays its findings through. Bytes of any kind are
/// either taken or refused with an Error that is not ErrorKind::internal; anything else ends the process.
namespace modelflow::fuzz {

using Bytes = std::span<const std::uint8_t>;

void read_model(Bytes bytes);  ///< a ModelProto: read, written and read again
void read_text(Bytes bytes);   ///< the text form
void infer(Bytes bytes);       ///< either of both: types and shapes, of symbols and of numbers
void passes(Bytes bytes);      ///< either of both: all passes, the result written and read again
void archive(Bytes bytes);     ///< an .npz file
void kernels(Bytes bytes);     ///< calls of fused ops: what `accepts` takes can be run, on tensors of any other shape

struct Entry {
  const char* name;
  void (*run)(Bytes);
};
inline constexpr Entry kTargets[] = {{"read_model", read_model}, {"read_text", read_text}, {"infer", infer},
                                     {"passes", passes},         {"archive", archive},     {"kernels", kernels}};

}  // namespace modelflow::fuzz
