// LSTM and GRU. What x gives to the gates is one product for all steps; then each step is a launch of its own, since
// the blocks of a grid cannot wait for one another, or, where r stays in the cache of a multiprocessor, one block takes
// all steps of its sequences. In a step a warp has a unit and several sequences: it reads the rows of r that belong to
// the unit once for them all, each lane a part of every sum, and the lanes that end up with the sums of a sequence
// compute its cell. States are float32 from the first step to the last, whatever the operands are.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/gemm.h"
#include "backends/cuda/device/grid.h"
#include "backends/cuda/device/plain_tile.h"
#include "backends/cuda/device/recurrent_cells.h"

namespace modelflow::cuda {
namespace {

constexpr int kWarp = 32, kUnits = 8, kThreads = kWarp * kUnits;  // units of a block: a warp for each
constexpr int kWalkThreads = 512;                                 // of a block that takes all steps
constexpr int kWalkRows = RecurrentLaunch::kWalkRows, kStepRows = RecurrentLaunch::kStepRows;
constexpr int kAtOnce = 4;  // numbers of a row that a lane reads

/// Initial states; where there is no step they are the last ones as well. Sequences whose length is 0 end with zeros,
/// as in ONNX Runtime.
template <class T>
__global__ void begin(const RecurrentLaunch a) {
  const auto state = [&](std::int64_t i, const void* first, float* to, void* last) {
    const std::int64_t row = i / a.hidden % a.batch;
    const bool empty = a.lengths && !(static_cast<float>(static_cast<const T*>(a.lengths)[row]) > 0);
    const float v = first && !empty ? static_cast<float>(static_cast<const T*>(first)[i]) : 0.0F;
    to[i] = v;
    if (a.seq == 0 && last) static_cast<T*>(last)[i] = static_cast<T>(v);
  };
  for (std::int64_t i = thread_of_grid(); i < states_of(a); i += threads_of_grid()) {
    state(i, a.first_h, a.h, a.last_h);
    if (a.lstm) state(i, a.first_c, a.c, a.last_c);
  }
}

/// Tiles of the gates of x, of each direction.
__host__ __device__ LargeGrid grid_of(const RecurrentLaunch& a, std::int64_t rows, std::int64_t columns) {
  return {ceil_div(a.seq * a.batch, rows), ceil_div(gates_of(a), columns), a.dirs};
}

/// What a gate has beside its product: both biases, but that of r where the reset multiplies it.
template <class T>
__device__ inline float bias_of(const RecurrentLaunch& a, std::int64_t dir, std::int64_t gate) {
  if (!a.bias) return 0;
  const std::int64_t gates = gates_of(a);
  const T* bias = static_cast<const T*>(a.bias) + dir * 2 * gates;
  const bool both = !a.linear_before_reset || gate < 2 * a.hidden;
  return static_cast<float>(bias[gate]) + (both ? static_cast<float>(bias[gates + gate]) : 0.0F);
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads) tensor_gates(const RecurrentLaunch a) {
  MF_DYNAMIC_SHARED(T, shared);
  const LargeGrid here = grid_of(a, Shape::kRows, Shape::kColumns).here();
  if (here.z >= a.dirs) return;
  const std::int64_t rows = a.seq * a.batch, gates = gates_of(a), k = a.input;
  const std::int64_t row0 = here.x * Shape::kRows, column0 = here.y * Shape::kColumns;
  const T *x = static_cast<const T*>(a.x), *w = static_cast<const T*>(a.w) + here.z * gates * k;
  const auto fetch = [&](T* tile, std::int64_t k0) {
    fetch_tile<T, Tile<T, Shape::kRows, false>, Shape::kThreads>(tile, x, k, row0, k0, rows, k, a.wide_x);
  };
  const auto fetch_w = [&](T* tile, std::int64_t k0) {
    fetch_tile<T, Tile<T, Shape::kColumns, false>, Shape::kThreads>(tile, w, k, column0, k0, gates, k, a.wide_x);
  };
  gemm_block<T, Shape, false, false>(k, shared, fetch, fetch_w, [&](int r, int c, const float* sums) {
    for (int i = 0; i < 8 && row0 + r < rows; ++i) {
      const std::int64_t gate = column0 + c + i;
      if (gate < gates) a.gates[(here.z * rows + row0 + r) * gates + gate] = sums[i] + bias_of<T>(a, here.z, gate);
    }
  });
}

template <class T>
__global__ void __launch_bounds__(kPlainThreads) plain_gates(const RecurrentLaunch a) {
  const LargeGrid here = grid_of(a, kPlainSide, kPlainSide).here();
  if (here.z >= a.dirs) return;
  const std::int64_t rows = a.seq * a.batch, gates = gates_of(a);
  const std::int64_t row0 = here.x * kPlainSide, column0 = here.y * kPlainSide;
  const T *x = static_cast<const T*>(a.x), *w = static_cast<const T*>(a.w) + here.z * gates * a.input;
  const auto fetch = [&](PlainSlice& left, PlainSlice& right, std::int64_t k0) {
    for (int i = static_cast<int>(threadIdx.x); i < kPlainSide * kPlainDepth; i += kPlainThreads) {
      const std::int64_t at = k0 + i % kPlainDepth, row = row0 + i / kPlainDepth, gate = column0 + i / kPlainDepth;
      const bool inside = at < a.input;
      left[i % kPlainDepth][i / kPlainDepth] = inside && row < rows ? static_cast<float>(x[row * a.input + at]) : 0.0F;
      right[i % kPlainDepth][i / kPlainDepth] =
          inside && gate < gates ? static_cast<float>(w[gate * a.input + at]) : 0.0F;
    }
  };
  plain_block(a.input, fetch, [&](int r, int c, float sum) {
    const std::int64_t row = row0 + r, gate = column0 + c;
    if (row < rows && gate < gates) a.gates[(here.z * rows + row) * gates + gate] = sum + bias_of<T>(a, here.z, gate);
  });
}

/// Numbers of a row from k on, zeros behind its end.
template <class T>
__device__ inline void read_row(const T* row, std::int64_t k, std::int64_t n, bool wide, float (&to)[kAtOnce]) {
  if (wide) return read<T, kAtOnce>(row + k, to);
  for (int i = 0; i < kAtOnce; ++i) to[i] = k + i < n ? static_cast<float>(row[k + i]) : 0.0F;
}

/// Sums over the lanes of a warp, of `kRows` at once: in turn each half of them goes to one half of the lanes. Lane i
/// gets row i / (32 / kRows).
template <int kRows>
__device__ inline float sum_of_lanes(const float (&v)[kRows], int apart = kWarp / 2) {
  if constexpr (kRows == 1) {
    float sum = v[0];
    for (; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0U, sum, apart);
    return sum;
  } else {
    const bool upper = threadIdx.x & static_cast<unsigned>(apart);
    float half[kRows / 2];
    for (int i = 0; i < kRows / 2; ++i) {
      const float kept = upper ? v[i + kRows / 2] : v[i], given = upper ? v[i] : v[i + kRows / 2];
      half[i] = kept + __shfl_xor_sync(~0U, given, apart);
    }
    return sum_of_lanes<kRows / 2>(half, apart / 2);
  }
}

/// One unit of up to kRows sequences, those from `row0` on, at one step: the work of a warp.
template <class T, int kRows, class Step>
__device__ inline void advance(const RecurrentLaunch& a, std::int64_t dir, std::int64_t row0, std::int64_t unit,
                               std::int64_t step) {
  constexpr int kGates = Step::kGates, kShare = kWarp / kRows;  // lanes of a row behind the sums
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t n = a.hidden;
  const Cell cell = Cell::of(a, dir, row0 + lane / kShare, unit, step, T());
  float x[kGates];
  for (int g = 0; g < kGates; ++g) x[g] = cell.active ? cell.gate(a, Step::kFirst + g) : 0.0F;

  const T* r = static_cast<const T*>(a.r) + dir * gates_of(a) * n + (Step::kFirst * n + unit) * n;
  const float* h = Step::factors(a, step) + (dir * a.batch + row0) * n;
  const int rows = a.batch - row0 < kRows ? static_cast<int>(a.batch - row0) : kRows;
  float sums[kGates][kRows] = {};
#pragma unroll 2
  for (std::int64_t k = lane * kAtOnce; k < n; k += kWarp * kAtOnce) {
    float w[kGates][kAtOnce];
    for (int g = 0; g < kGates; ++g) read_row(r + g * n * n, k, n, a.wide_r, w[g]);
    for (int i = 0; i < kRows; ++i) {
      float v[kAtOnce];
      read_row(h + (i < rows ? i : rows - 1) * n, k, n, a.wide_r, v);
      for (int g = 0; g < kGates; ++g)
        for (int j = 0; j < kAtOnce; ++j) sums[g][i] += w[g][j] * v[j];
    }
  }
  float sum[kGates];
  for (int g = 0; g < kGates; ++g) sum[g] = sum_of_lanes<kRows>(sums[g]);
  if (cell.there && lane % kShare == 0) Step::finish(a, cell, x, sum, T());
}

template <int kRows>
__host__ __device__ LargeGrid grid_of_step(const RecurrentLaunch& a) {
  return {ceil_div(a.hidden, kUnits), ceil_div(a.batch, kRows), a.dirs};
}

/// One step, or one of its two passes: as many blocks as there are units.
template <class T, int kRows, class Step>
__global__ void __launch_bounds__(kThreads) take_step(const RecurrentLaunch a, const std::int64_t step) {
  const LargeGrid here = grid_of_step<kRows>(a).here();
  const std::int64_t unit = here.x * kUnits + threadIdx.x / kWarp;
  if (here.z < a.dirs && unit < a.hidden) advance<T, kRows, Step>(a, here.z, here.y * kRows, unit, step);
}

template <int kRows>
__host__ __device__ LargeGrid grid_of_walk(const RecurrentLaunch& a) {
  return {ceil_div(a.batch, kRows), a.dirs, 1};
}

/// All steps of a few sequences by one block, whose threads can wait for one another.
template <class T, int kRows, class... Passes>
__global__ void __launch_bounds__(kWalkThreads, 1) walk(const RecurrentLaunch a) {
  const LargeGrid here = grid_of_walk<kRows>(a).here();
  if (here.z > 0) return;
  const auto pass = [&]<class Step>(std::int64_t step, Step) {
    for (std::int64_t unit = threadIdx.x / kWarp; unit < a.hidden; unit += kWalkThreads / kWarp)
      advance<T, kRows, Step>(a, here.y, here.x * kRows, unit, step);
    __syncthreads();
  };
  for (std::int64_t step = 0; step < a.seq; ++step) (pass(step, Passes()), ...);
}

template <class T, int kRows, class... Passes>
const char* start_passes(const RecurrentLaunch& a, void* stream) {
  if constexpr (kRows <= kWalkRows) {
    if (a.walks) return launch(walk<T, kRows, Passes...>, grid_of_walk<kRows>(a).launch(kWalkThreads, 0, stream), a);
  }
  const char* why = nullptr;
  const auto start = [&]<class Step>(std::int64_t step, Step) {
    if (!why) why = launch(take_step<T, kRows, Step>, grid_of_step<kRows>(a).launch(kThreads, 0, stream), a, step);
  };
  for (std::int64_t step = 0; step < a.seq; ++step) (start(step, Passes()), ...);
  return why;
}

template <class T, int kRows>
const char* start_steps(const RecurrentLaunch& a, void* stream) {
  if (a.lstm) return start_passes<T, kRows, LstmStep>(a, stream);
  if (a.linear_before_reset) return start_passes<T, kRows, GruStep>(a, stream);
  return start_passes<T, kRows, GruGates, GruCandidate>(a, stream);
}

template <class T, class Shape>
const char* start_tensor_gates(const RecurrentLaunch& a, void* stream) {
  return launch(
      tensor_gates<T, Shape>,
      grid_of(a, Shape::kRows, Shape::kColumns).launch(Shape::kThreads, gemm_shared<T, Shape, false, false>(), stream),
      a);
}

template <class T>
const char* start_gates(const RecurrentLaunch& a, void* stream) {
  if (!a.tensor_cores)
    return launch(plain_gates<T>, grid_of(a, kPlainSide, kPlainSide).launch(kPlainThreads, 0, stream), a);
  if constexpr (sizeof(T) == 2)
    return a.large ? start_tensor_gates<T, LargeGemm>(a, stream) : start_tensor_gates<T, SmallGemm>(a, stream);
  return "tensor cores take 16-bit numbers";
}

}  // namespace

const char* start_recurrent(const RecurrentLaunch& launched, void* stream) {
  RecurrentLaunch a = launched;
  return with_type(a.number, [&]<class T>(T) -> const char* {
    a.wide_x = a.input % (16 / static_cast<int>(sizeof(T))) == 0 && aligned(a.x, 16) && aligned(a.w, 16);
    a.wide_r = a.hidden % kAtOnce == 0 && aligned(a.r, kAtOnce * sizeof(T));
    if (const char* why = launch(begin<T>, over_units(states_of(a), stream), a)) return why;
    if (a.seq == 0) return nullptr;
    if (const char* why = start_gates<T>(a, stream)) return why;
    if (a.batch == 1) return start_steps<T, 1>(a, stream);
    return a.walks ? start_steps<T, kWalkRows>(a, stream) : start_steps<T, kStepRows>(a, stream);
  });
}

}  // namespace modelflow::cuda
