// One activation on every element, at the bandwidth of the device's memory.
#include "backends/cuda/code/launchers.h"
#include "backends/cuda/device/activation.h"
#include "backends/cuda/device/grid.h"

namespace modelflow::cuda {
namespace {

template <class T, int N>
__global__ void activate_elements(const ActivationLaunch a) {
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.y);
  for (std::int64_t i = thread_of_grid() * N; i < a.elements; i += threads_of_grid() * N) {
    float v[N];
    read<T, N>(x + i, v);
    activate_each(a.activation, v);
    write<T, N>(v, y + i);
  }
}

template <class T>
const char* start(const ActivationLaunch& a, void* stream) {
  constexpr int kWide = 16 / sizeof(T);
  if (!aligned(a.x, 16) || !aligned(a.y, 16)) return launch(activate_elements<T, 1>, over_units(a.elements, stream), a);
  ActivationLaunch whole = a, rest = a;  // pieces, and what is left behind the last one
  whole.elements = a.elements / kWide * kWide;
  rest.elements = a.elements - whole.elements;
  rest.x = static_cast<const T*>(a.x) + whole.elements;
  rest.y = static_cast<T*>(a.y) + whole.elements;
  const char* why = nullptr;
  if (whole.elements > 0) why = launch(activate_elements<T, kWide>, over_units(whole.elements / kWide, stream), whole);
  if (why || rest.elements == 0) return why;
  return launch(activate_elements<T, 1>, over_units(rest.elements, stream), rest);
}

}  // namespace

const char* start_activation(const ActivationLaunch& a, void* stream) {
  return with_type(a.number, [&]<class T>(T) { return start<T>(a, stream); });
}

}  // namespace modelflow::cuda
