// Programs of elementwise ops in one pass: one kernel interprets them all, with its operands in registers. Made for
// each program by NVRTC, it would spare the choices between ops; what DRAM gives is the bound of short programs either
// way.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/program.h"

namespace modelflow::cuda {
namespace {

template <class T, int N>
__global__ void run_elements(const __grid_constant__ PointwiseLaunch a) {
  MF_DYNAMIC_SHARED(float, shared);
  T* y = static_cast<T*>(a.y);
  for (std::int64_t i = thread_of_grid() * N; i < a.elements; i += threads_of_grid() * N) {
    float v[N];
    run_program<N>(
        a.program, [&](int input, float(&to)[N]) { fetch<T, N>(a.x[input], a.places, input, i, to); }, shared, v);
    write<T, N>(v, y + i);
  }
}

template <class T, int N>
bool wide(const PointwiseLaunch& a) {
  bool fits = aligned(a.y, sizeof(T) * N);
  for (int i = 0; i < a.inputs; ++i) fits = fits && fetches(a.x[i], a.places, i, N, sizeof(T));
  return fits;
}

template <class T, int N>
const char* start(const PointwiseLaunch& a, void* stream) {
  Launch how = over_units(a.elements / N, stream);
  how.shared = kept_bytes(how, a.program.kept, N);
  return launch(run_elements<T, N>, how, a);
}

}  // namespace

const char* start_pointwise(const PointwiseLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) {
    constexpr int kWide = 16 / sizeof(T);
    return wide<T, kWide>(a) ? start<T, kWide>(a, stream) : start<T, 1>(a, stream);
  });
}

}  // namespace modelflow::cuda
