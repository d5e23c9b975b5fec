// Programs of elementwise ops for every step of sequences: a thread has the same elements of all steps and interprets
// the program once for each of them. What it reads and carries on lies in shared memory that no other thread touches,
// as an interpreter asks for it by number. Steps wait for one another, not for memory: the next ones are on their way
// while those before are computed.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/program.h"

namespace modelflow::cuda {
namespace {

constexpr unsigned kThreads = 64;  // few, so that few chains spread over many multiprocessors
constexpr int kWide = PointwiseScanLaunch::kWide;

/// Rows of sequences that are fetched at a time, of all of them together.
template <int N>
constexpr int kFetched = N == 1 ? 16 : 8;

/// Where a thread has its numbers, N at a time: what lines keep comes first.
template <int N>
struct Slots {
  int rows, others, states, chunk, all;
  __host__ __device__ explicit Slots(const PointwiseScanLaunch& a)
      : rows(a.program.kept),
        others(rows + kFetched<N>),
        states(others + a.inputs - a.sequences - a.states),
        chunk(kFetched<N> / a.sequences),
        all(states + 2 * a.states) {}
};

/// Rows on their way from memory to shared memory, in the type of the operands: to make floats of them would be to
/// wait.
template <class T, int N>
struct FetchedRows {
  Pack<T, N> rows[kFetched<N>];

  /// Those from `step` on, one of each sequence and then the next of each; zeros behind the last.
  __device__ void fetch(const PointwiseScanLaunch& a, std::int64_t chain, std::int64_t step) {
    std::int64_t at = ((chain / a.inner) * a.length + a.first + step) * a.inner + chain % a.inner;
    int x = 0;
#pragma unroll
    for (int i = 0; i < kFetched<N>; ++i) {
      if (step < a.steps) {
        rows[i] = *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(a.x[x]) + at);
      } else {
        for (int k = 0; k < N; ++k) rows[i].of[k] = T(0.0F);
      }
      if (++x < a.sequences) continue;
      x = 0, ++step, at += a.inner;
    }
  }
  __device__ void put(Kept<N>& mine, int first) const {
#pragma unroll
    for (int i = 0; i < kFetched<N>; ++i) {
      float v[N];
      for (int k = 0; k < N; ++k) v[k] = static_cast<float>(rows[i].of[k]);
      mine.put(first + i, v);
    }
  }
};

/// Step `step` of N neighbouring chains, whose rows lie from `row` on.
template <class T, int N>
__device__ inline void run_step(const PointwiseScanLaunch& a, const Slots<N>& slots, Kept<N>& mine, float* shared,
                                std::int64_t step, int row, T* y) {
  const int before = slots.states + static_cast<int>(step % 2) * a.states;
  const int behind = slots.states + static_cast<int>((step + 1) % 2) * a.states;
  const auto read = [&](int input, float(&to)[N]) {
    const int other = input - a.sequences, state = input - a.inputs + a.states;
    mine.get(other < 0 ? row + input : state < 0 ? slots.others + other : before + state, to);
  };
  const auto wrote = [&](int line, const float(&v)[N]) {
    const unsigned takers = a.takers[line];
    if (takers == 0) return;
    if (takers & PointwiseScanLaunch::kResult) write<T, N>(v, y);
    for (int state = 0; state < a.states; ++state)
      if (takers >> state & 1U) mine.put(behind + state, v);
  };
  float v[N];
  run_program<N>(a.program, read, wrote, shared, v);
}

template <class T, int N>
__global__ void run_steps(const __grid_constant__ PointwiseScanLaunch a) {
  MF_DYNAMIC_SHARED(float, shared);
  const Slots<N> slots(a);
  Kept<N> mine(shared);
  const std::int64_t chains = a.outer * a.inner;
  for (std::int64_t chain = thread_of_grid() * N; chain < chains; chain += threads_of_grid() * N) {
    FetchedRows<T, N> fetched;
    fetched.fetch(a, chain, 0);
    float v[N];
    for (int i = a.sequences; i < a.inputs; ++i) {
      fetch<T, N>(a.x[i], a.places, i, chain, v);
      mine.put(slots.others + i - a.sequences, v);  // states behind them
    }
    T* y = static_cast<T*>(a.y) + chain / a.inner * a.steps * a.inner + chain % a.inner;
    for (std::int64_t step = 0; step < a.steps;) {
      fetched.put(mine, slots.rows);
      fetched.fetch(a, chain, step + slots.chunk);
      for (int row = 0; row < slots.chunk && step < a.steps; ++row, ++step, y += a.inner)
        run_step<T, N>(a, slots, mine, shared, step, slots.rows + row * a.sequences, y);
    }
    for (int state = 0; state < a.states; ++state) {
      if (!a.last[state]) continue;
      mine.get(slots.states + static_cast<int>(a.steps % 2) * a.states + state, v);
      write<T, N>(v, static_cast<T*>(a.last[state]) + chain);
    }
  }
}

template <class T, int N>
bool wide(const PointwiseScanLaunch& a) {
  bool fits = a.wide && a.inner % N == 0 && aligned(a.y, sizeof(T) * N);
  for (int i = 0; i < a.sequences; ++i) fits = fits && aligned(a.x[i], sizeof(T) * N);
  for (int i = a.sequences; i < a.inputs; ++i) fits = fits && fetches(a.x[i], a.places, i, N, sizeof(T));
  for (int i = 0; i < a.states; ++i) fits = fits && aligned(a.last[i], sizeof(T) * N);
  return fits;
}

template <class T, int N>
const char* start(const PointwiseScanLaunch& a, void* stream) {
  Launch how = {blocks_for(a.outer * a.inner / N, kThreads), kThreads, 0, stream_of(stream)};
  how.shared = kept_bytes(how, Slots<N>(a).all, N);
  return launch(run_steps<T, N>, how, a);
}

}  // namespace

const char* start_pointwise_scan(const PointwiseScanLaunch& a, void* stream) {
  return with_type(a.number,
                   [&]<class T>(T) { return wide<T, kWide>(a) ? start<T, kWide>(a, stream) : start<T, 1>(a, stream); });
}

}  // namespace modelflow::cuda
