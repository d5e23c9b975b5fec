// Reductions with the elementwise ops around them: operands are read once, or twice where the result is as large as
// they are, the second time mostly from a cache.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/program.h"

namespace modelflow::cuda {
namespace {

constexpr float kInfinity = __builtin_huge_valf();

__device__ inline float first_of(Join join) {
  return join == Join::max ? -kInfinity : join == Join::min ? kInfinity : 0.0F;
}

/// Joins two numbers as the launch says.
struct Joined {
  Join join;
  __device__ float operator()(float a, float b) const {
    return join == Join::max ? Max()(a, b) : join == Join::min ? Min()(a, b) : a + b;
  }
};

__device__ inline float finished(const ReduceLaunch& a, float value) {
  if (a.mean) value /= static_cast<float>(a.n > 0 ? a.n : 1);
  return a.root ? sqrtf(value) : value;
}

/// Lines before the reduction or behind it, on N elements from this one on. One place for both spares the compiler half
/// of its work.
template <class T, int N>
__device__ inline void run_part(const ReduceLaunch& a, bool behind, float reduced, std::int64_t element, float* shared,
                                float (&v)[N]) {
  const Program& program = behind ? a.behind : a.before;
  const Places& places = behind ? a.behind_places : a.before_places;
  const auto read_input = [&](int input, float(&to)[N]) {
    if (input < a.inputs) return fetch<T, N>(a.x[input], places, input, element, to);
    for (int k = 0; k < N; ++k) to[k] = reduced;
  };
  run_program<N>(program, read_input, shared, v);
}

/// Threads that share a line of elements: of a row its threads, of a column the warps of its block.
struct Share {
  std::int64_t first, step;  ///< of the line's elements, and of those in memory
  std::int64_t start, next;  ///< of this thread
};

/// The elements of one line that this thread reads, joined; behind the reduction, their results are written.
template <class T, int N>
__device__ inline float pass(const ReduceLaunch& a, const Share& s, bool behind, float reduced, float* shared) {
  float value = first_of(a.join);
  for (std::int64_t i = s.start; i < a.n; i += s.next) {
    const std::int64_t element = s.first + i * s.step;
    float v[N];
    run_part<T, N>(a, behind, reduced, element, shared, v);
    if (behind) {
      write<T, N>(v, static_cast<T*>(a.y) + element);
      continue;
    }
    for (int k = 0; k < N; ++k) value = Joined{a.join}(value, a.squares ? v[k] * v[k] : v[k]);
  }
  return value;
}

/// What one thread writes where one number is left of a line.
template <class T>
__device__ inline void write_one(const ReduceLaunch& a, float reduced, std::int64_t element, float* shared) {
  float v[1];
  run_part<T, 1>(a, true, reduced, element, shared, v);
  static_cast<T*>(a.y)[element] = static_cast<T>(v[0]);
}

template <class T, int N>
__global__ void reduce_rows(const __grid_constant__ ReduceLaunch a) {
  MF_DYNAMIC_SHARED(float, shared);
  __shared__ float partial[32];
  for (std::int64_t r = first_row(); r < a.outer; r += rows_of_grid()) {
    const Share share{r * a.n, 1, threadIdx.x * N, blockDim.x * N};
    float reduced = 0;
    for (int second = 0; second <= (a.full ? 1 : 0); ++second) {
      const float value = pass<T, N>(a, share, second != 0, reduced, shared);
      if (!second) reduced = finished(a, block_reduce(value, Joined{a.join}, partial));
    }
    if (!a.full && threadIdx.x == 0) write_one<T>(a, reduced, r, shared);
  }
}

template <class T>
__global__ void reduce_columns(const __grid_constant__ ReduceLaunch a) {
  MF_DYNAMIC_SHARED(float, shared);
  __shared__ float partial[8][32];
  const Columns columns{a.inner};
  for (std::int64_t unit = blockIdx.x; unit < a.outer * columns.stripes(); unit += gridDim.x) {
    const std::int64_t column = columns.column(unit), outer = columns.outer(unit);
    const bool inside = column < a.inner;
    const Share share{outer * a.n * a.inner + column, a.inner, inside ? threadIdx.y : a.n, blockDim.y};
    float reduced = 0;
    for (int second = 0; second <= (a.full ? 1 : 0); ++second) {
      const float value = pass<T, 1>(a, share, second != 0, reduced, shared);
      if (!second) reduced = finished(a, column_reduce(value, Joined{a.join}, partial));
    }
    if (!a.full && inside && threadIdx.y == 0) write_one<T>(a, reduced, outer * a.inner + column, shared);
  }
}

template <class T, int N>
bool wide(const ReduceLaunch& a) {
  bool fits = a.n % N == 0 && (!a.full || aligned(a.y, sizeof(T) * N));
  for (int i = 0; i < a.inputs; ++i) {
    fits = fits && fetches(a.x[i], a.before_places, i, N, sizeof(T));
    fits = fits && (!a.full || fetches(a.x[i], a.behind_places, i, N, sizeof(T)));
  }
  return fits;
}

template <class T, int N>
const char* start(const ReduceLaunch& a, void* stream) {
  Launch how = over_rows(a.outer, ceil_div(a.n, N), stream);
  how.shared = kept_bytes(how, a.before.kept > a.behind.kept ? a.before.kept : a.behind.kept, N);
  return launch(reduce_rows<T, N>, how, a);
}

}  // namespace

const char* start_reduce(const ReduceLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) {
    if (a.inner == 1) return wide<T, 4>(a) ? start<T, 4>(a, stream) : start<T, 1>(a, stream);
    Launch how = over_columns(a.outer, a.inner, stream);
    how.shared = kept_bytes(how, a.before.kept > a.behind.kept ? a.before.kept : a.behind.kept, 1);
    return launch(reduce_columns<T>, how, a);
  });
}

}  // namespace modelflow::cuda
