#include "backends/cpu/channels_loops.h"

namespace modelflow::cpu {

const ChannelLoops channel_loops_any = kLoops;

const ChannelLoops& channel_loops() { return host_isa() >= Isa::avx512 ? channel_loops_avx512 : channel_loops_any; }

}  // namespace modelflow::cpu
