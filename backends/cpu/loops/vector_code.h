// The table of all loops over vectors; kernels take the one for their target's instruction set.
#pragma once

#include "backends/cpu/loops/bytes.h"
#include "backends/cpu/loops/channels.h"
#include "backends/cpu/loops/norm.h"
#include "backends/cpu/loops/pointwise.h"
#include "backends/cpu/loops/products.h"
#include "backends/cpu/loops/resize.h"
#include "backends/cpu/loops/rotary.h"
#include "backends/cpu/loops/scan.h"
#include "backends/cpu/loops/softmax.h"
#include "modelflow/target.h"

namespace modelflow::cpu {

struct VectorCode {
  PointwiseLoops pointwise;
  SoftmaxLoops softmax;
  NormLoops norm;
  ChannelLoops channels;
  RotaryLoops rotary;
  ProductLoops products;
  ResizeLoops resize;
  ByteLoops bytes;
  ScanLoops scan;
};

/// Each only where the machine has the instructions.
extern const VectorCode vector_code_any, vector_code_avx2, vector_code_avx512;

/// The one for a target; a part of the choice of kernels, it stands beside their table.
const VectorCode& vector_code(const Target& target);

}  // namespace modelflow::cpu
