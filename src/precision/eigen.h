// Eigen, whose assertions are errors like all others here: a library does not end the process of its host.
#pragma once

#include "modelflow/error.h"

#define eigen_assert(holds)                                                                          \
  do {                                                                                               \
    if (!(holds)) throw modelflow::Error(modelflow::ErrorKind::internal, "linear algebra: " #holds); \
  } while (false)

#include <Eigen/Cholesky>
