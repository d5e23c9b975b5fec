// From the driver's numbers to a target.
#include "backends/cuda/device_target.h"

#include <string>

namespace modelflow::cuda {

Target target_of(const DeviceLibrary& library) {
  DeviceNumbers numbers;
  check("device", library.describe(0, &numbers));
  int known = 0;  // the newest that is not newer: 8.7 and 10.3 run the code of 8.6 and 10.0
  for (const int sm : {75, 80, 86, 89, 90, 100, 120})
    if (sm <= numbers.sm) known = sm;
  if (known == 0)
    throw Error(ErrorKind::unsupported, std::string(numbers.name) + " is of sm_" + std::to_string(numbers.sm) +
                                            ", older than the sm_75 that kernels need");
  Target target = Target::parse("cuda:sm_" + std::to_string(known));
  target.sm = numbers.sm;
  target.cores = numbers.multiprocessors;
  target.l1 = numbers.shared_per_block;
  target.l2 = target.l3 = numbers.l2;
  if (numbers.bandwidth > 0) target.bandwidth = numbers.bandwidth / target.cores;
  return target;
}

}  // namespace modelflow::cuda
