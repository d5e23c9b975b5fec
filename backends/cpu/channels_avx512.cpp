#include "backends/cpu/channels_loops.h"

namespace modelflow::cpu {

const ChannelLoops channel_loops_avx512 = kLoops;

}  // namespace modelflow::cpu
