// CUDA threads on the host: a block is a set of fibers on the calling thread that take turns at barriers and warp
// operations. Blocks run one after the other. Finds what tests should find: accesses out of bounds (AddressSanitizer),
// races between the threads of a block (results that depend on their order: MODELFLOW_EMULATOR_ORDER), barriers that
// not all threads reach (an error).
#pragma once

#include <functional>

namespace modelflow::cuda::emulated {

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  unsigned x, y, z;
};

struct Position {
  uint3 thread, block;
  dim3 block_size, grid_size;
};

/// Where the fiber that runs stands.
const Position& here();
/// In its warp.
int lane();

/// Null, or what went wrong: threads that wait for one another, an exception of a thread, more than an H100 has. The
/// text lives until the next call of this thread. `shared` is dynamic; every kernel is taken to declare kStaticShared
/// beside.
const char* run(dim3 grid, dim3 block, unsigned shared, const std::function<void()>& thread);
void* dynamic_shared();
void barrier();

/// Lanes in `mask` meet here; the last one to come runs combine(arguments of all lanes, mask).
using Combine = void (*)(void* const* lanes, unsigned mask);
void meet(unsigned mask, Combine combine, void* mine, const char* what);

/// An error of the thread, as on a device, unless the address is a multiple of `bytes`.
void check_aligned(const void* at, unsigned bytes, const char* what);

/// A copy of `bytes`, followed by zeros up to `all`, to whose multiples both addresses lie. In the background: it
/// happens at its wait, so that a missing wait shows; where threads are shuffled, at once or then.
void copy_async(void* to, const void* from, unsigned bytes, unsigned all);
void copy_async_commit();
void copy_async_wait(int pending);

}  // namespace modelflow::cuda::emulated
