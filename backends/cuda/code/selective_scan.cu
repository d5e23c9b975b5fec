// Selective scans. Steps follow one another, as decays of several steps in one product would overflow where those of
// single steps do not: what runs at once are channels and states. Neighbouring threads, or groups of threads, have
// neighbouring channels, which lie side by side in u, delta and y. A thread keeps the states that it has in registers:
// all 16 of a channel where there are channels enough for the whole device, else 4 or one, and a warp adds up their
// parts of y. Several steps at a time go through shared memory, as all channels of a block read the same b and c, and
// are fetched while those before are computed: a step would wait for memory longer than it takes.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

constexpr int kThreads = 128, kStates = SelectiveScanLaunch::kStates;

/// How a block shares out its work: each thread has `kHeld` states of a channel.
template <int kLanes>
struct Shares {
  static constexpr int kHeld = kStates / kLanes, kChannels = kThreads / kLanes;
  static constexpr int kSteps = kLanes == 1 ? 8 : kLanes == 4 ? 32 : 64;  ///< of a chunk: more where they take less
  static constexpr int kRows = kSteps * kChannels, kColumns = kSteps * kStates;
  static constexpr int kFloats = 3 * kRows + 2 * kColumns;  ///< of shared memory

  float *u, *delta, *y, *b, *c;
  __device__ explicit Shares(float* shared)
      : u(shared), delta(u + kRows), y(delta + kRows), b(y + kRows), c(b + kColumns) {}
};

/// What a block works on: the channels from `channel` on of a sequence, and of those steps and states from these on.
struct Part {
  std::int64_t sequence, channel, step, state;
};

/// A chunk on its way from memory to shared memory, in the type of the operands: to make floats of it would be to wait.
template <int kLanes, class T>
struct Fetched {
  using Of = Shares<kLanes>;
  T u[Of::kRows / kThreads], delta[Of::kRows / kThreads], b[Of::kColumns / kThreads], c[Of::kColumns / kThreads];

  __device__ void fetch(const SelectiveScanLaunch& a, const Part& from) {
    rows(static_cast<const T*>(a.u), a, a.channels, Of::kChannels, from, from.channel, u);
    rows(static_cast<const T*>(a.delta), a, a.channels, Of::kChannels, from, from.channel, delta);
    rows(static_cast<const T*>(a.b), a, a.states, kStates, from, from.state, b);
    rows(static_cast<const T*>(a.c), a, a.states, kStates, from, from.state, c);
  }
  __device__ void put(const Of& to) const {
    floats(u, to.u);
    floats(delta, to.delta);
    floats(b, to.b);
    floats(c, to.c);
  }

 private:
  /// Of each step the `width` numbers from `first` on; zeros behind the last of `all`.
  template <int N>
  static __device__ void rows(const T* x, const SelectiveScanLaunch& a, std::int64_t all, int width, const Part& from,
                              std::int64_t first, T (&to)[N]) {
    x += (from.sequence * a.length + from.step) * all + first;
    for (int i = 0; i < N; ++i) {
      const int at = i * kThreads + static_cast<int>(threadIdx.x), step = at / width, column = at % width;
      const bool inside = from.step + step < a.steps && first + column < all;
      to[i] = inside ? x[step * all + column] : T(0.0F);
    }
  }
  template <int N>
  static __device__ void floats(const T (&from)[N], float* to) {
    for (int i = 0; i < N; ++i) to[i * kThreads + threadIdx.x] = static_cast<float>(from[i]);
  }
};

/// The states that a thread has, and their rates.
template <int kLanes>
struct States {
  using Of = Shares<kLanes>;
  float h[Of::kHeld], rate[Of::kHeld];
  int held = 0;            ///< of them, that are there
  std::int64_t first = 0;  ///< in a tensor of the states of all channels

  /// `state`: [batch, channels, states] in U, or null for zeros.
  template <class T, class U>
  __device__ void load(const SelectiveScanLaunch& a, const Part& part, const U* state) {
    const std::int64_t channel = part.channel + threadIdx.x / kLanes;
    const std::int64_t n = part.state + threadIdx.x % kLanes * Of::kHeld, left = a.states - n;
    held = channel >= a.channels || left < 0 ? 0 : left < Of::kHeld ? static_cast<int>(left) : Of::kHeld;
    first = (part.sequence * a.channels + channel) * a.states + n;
    const T* rates = static_cast<const T*>(a.a) + channel * a.states + n;
    for (int k = 0; k < Of::kHeld; ++k) {
      rate[k] = k < held ? static_cast<float>(rates[k]) : 0.0F;
      h[k] = k < held && state ? static_cast<float>(state[first + k]) : 0.0F;
    }
  }
  template <class U>
  __device__ void save(U* state) const {
    for (int k = 0; k < Of::kHeld; ++k)
      if (k < held) state[first + k] = static_cast<U>(h[k]);
  }

  /// One step, and what the states of the channel give. No multiplication is fused with an addition: none is in the ops
  /// that this stands for.
  __device__ float step(const Of& of, int t, bool scales_b) {
    constexpr int kWide = Of::kHeld < 4 ? Of::kHeld : 4;
    const int row = t * Of::kChannels + static_cast<int>(threadIdx.x) / kLanes;
    const int column = t * kStates + static_cast<int>(threadIdx.x) % kLanes * Of::kHeld;
    const float u = of.u[row], delta = of.delta[row], scale = scales_b ? delta : 1.0F;
    float y = 0;
    for (int n = 0; n < Of::kHeld; n += kWide) {
      float b[kWide], c[kWide];
      read<float, kWide>(of.b + column + n, b);
      read<float, kWide>(of.c + column + n, c);
      for (int k = 0; k < kWide; ++k) {
        const float decay = expf(__fmul_rn(delta, rate[n + k]));
        h[n + k] = __fmul_rn(decay, h[n + k]) + __fmul_rn(__fmul_rn(scale, b[k]), u);
        y += n + k < held ? __fmul_rn(h[n + k], c[k]) : 0.0F;
      }
    }
    for (int apart = kLanes / 2; apart > 0; apart /= 2) y += __shfl_xor_sync(~0U, y, apart);
    return y;
  }
};

/// The steps of a chunk. Parts of y that come of more states than threads hold are added up.
template <int kLanes>
__device__ inline void advance(const SelectiveScanLaunch& a, const Part& part, const Shares<kLanes>& of,
                               States<kLanes>& states) {
  const std::int64_t left = a.steps - part.step;
  const int steps = left < of.kSteps ? static_cast<int>(left) : of.kSteps;
#pragma unroll 4
  for (int t = 0; t < steps; ++t) {
    const float y = states.step(of, t, a.scales_b);
    float& to = of.y[t * of.kChannels + threadIdx.x / kLanes];
    if (threadIdx.x % kLanes == 0) to = part.state == 0 ? y : to + y;
  }
}

template <int kLanes, class T>
__device__ inline void write_rows(const SelectiveScanLaunch& a, const Part& part, const Shares<kLanes>& of) {
  T* y = static_cast<T*>(a.y) + (part.sequence * a.steps + part.step) * a.channels + part.channel;
  for (int i = threadIdx.x; i < of.kRows; i += kThreads) {
    const int step = i / of.kChannels, channel = i % of.kChannels;
    if (part.step + step < a.steps && part.channel + channel < a.channels)
      y[step * a.channels + channel] = static_cast<T>(of.y[i]);
  }
}

/// A block goes through the chunks of its channels, and in each through the states, as many at a time as it holds.
template <int kLanes, class T>
__global__ void scan(const SelectiveScanLaunch a) {
  using Of = Shares<kLanes>;
  MF_DYNAMIC_SHARED(float, shared);
  const Of of(shared);
  const std::int64_t stripes = ceil_div(a.channels, Of::kChannels);
  const bool together = a.states <= kStates;
  for (std::int64_t unit = blockIdx.x; unit < a.batch * stripes; unit += gridDim.x) {
    Part part = {unit / stripes, unit % stripes * Of::kChannels, 0, 0};
    Fetched<kLanes, T> fetched;
    fetched.fetch(a, part);
    States<kLanes> states;
    while (part.step < a.steps) {
      const bool last_states = part.state + kStates >= a.states, last_steps = part.step + Of::kSteps >= a.steps;
      Part next = part;
      next.state = last_states ? 0 : part.state + kStates;
      next.step += last_states ? Of::kSteps : 0;
      __syncthreads();  // what the chunk before left may still be read
      fetched.put(of);
      __syncthreads();
      if (next.step < a.steps) fetched.fetch(a, next);
      if (part.step == 0)
        states.template load<T>(a, part, static_cast<const T*>(a.first));
      else if (!together)
        states.template load<T>(a, part, a.carried);
      advance(a, part, of, states);
      if (last_steps && a.last) states.save(static_cast<T*>(a.last));
      if (!last_steps && !together) states.save(a.carried);
      if (last_states) {
        __syncthreads();
        write_rows<kLanes, T>(a, part, of);
      }
      part = next;
    }
  }
}

template <int kLanes, class T>
const char* start(const SelectiveScanLaunch& a, void* stream) {
  using Of = Shares<kLanes>;
  const unsigned blocks = blocks_for(a.batch * ceil_div(a.channels, Of::kChannels), 1);
  return launch(scan<kLanes, T>, {blocks, kThreads, Of::kFloats * sizeof(float), stream_of(stream)}, a);
}

}  // namespace

const char* start_selective_scan(const SelectiveScanLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) {
    if (a.lanes == 1) return start<1, T>(a, stream);
    return a.lanes == 4 ? start<4, T>(a, stream) : start<16, T>(a, stream);
  });
}

}  // namespace modelflow::cuda
