// From the driver's numbers to a target, and which code of a library runs there.
#include "backends/cuda/device_target.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace modelflow::cuda {
namespace {

constexpr int kOldest = 75;  ///< what kernels need

/// One of CMAKE_CUDA_ARCHITECTURES: "90" is machine code and PTX, "90-real" and "90-virtual" one of them; "90a" is for
/// that device alone, "100f" for its generation.
struct Architecture {
  int sm = 0;
  char kind = ' ';
  bool machine_code = false, ptx = false;

  explicit Architecture(std::string_view text) {
    const char* const end = text.data() + text.size();
    const char* at = std::from_chars(text.data(), end, sm).ptr;
    if (at != end && (*at == 'a' || *at == 'f')) kind = *at++;
    const std::string_view rest(at, static_cast<std::size_t>(end - at));
    machine_code = rest != "-virtual";
    ptx = rest != "-real";
  }
  bool runs_on(int device) const {
    if (kind == 'a') return device == sm;
    const bool same_generation = device / 10 == sm / 10;
    return device >= sm && ((machine_code && same_generation) || (ptx && (kind != 'f' || same_generation)));
  }
};

}  // namespace

int code_for(std::string_view architectures, int sm) {
  int newest = 0;
  while (!architectures.empty()) {
    const std::size_t end = std::min(architectures.find('+'), architectures.size());
    const Architecture one(architectures.substr(0, end));
    if (one.runs_on(sm)) newest = std::max(newest, one.sm);
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
  }
  return newest;
}

bool serves(const DeviceLibrary& library, const Driver& driver) {
  const bool new_enough = driver.cuda / 1000 >= library.cuda / 1000;  // all of a major version run its libraries
  return new_enough &&
         std::ranges::any_of(driver.devices, [&](int sm) { return code_for(library.architectures, sm) >= kOldest; });
}

Target target_of(const DeviceLibrary& library, int device) {
  DeviceNumbers numbers;
  check("device", library.describe(device, &numbers));
  const int code = code_for(library.architectures, numbers.sm);
  if (code < kOldest)
    throw Error(ErrorKind::unsupported, std::string(numbers.name) + " is of sm_" + std::to_string(numbers.sm) +
                                            ", and the library has code for " + library.architectures +
                                            ": build it with MODELFLOW_CUDA_ARCHITECTURES for this device (sm_75 is "
                                            "the oldest)");
  int known = kOldest;  // the newest that is not newer: 8.7 and 10.3 are alike 8.6 and 10.0
  for (const int sm : {80, 86, 89, 90, 100, 120})
    if (sm <= numbers.sm) known = sm;
  Target target = Target::parse("cuda:sm_" + std::to_string(known));
  target.sm = code;
  target.cores = numbers.multiprocessors;
  target.l1 = numbers.shared_per_block;
  target.l2 = target.l3 = numbers.l2;
  if (numbers.bandwidth > 0) target.bandwidth = numbers.bandwidth / target.cores;
  return target;
}

const DeviceTargets::Found& DeviceTargets::of(int device) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = found_.try_emplace(device);
  Found& found = at->second;
  try {
    if (is_new) found.target = target_of(library_, device);
  } catch (const Error& error) {
    found.why = error.what();
  }
  return found;
}

}  // namespace modelflow::cuda
