// Tensor cores and what feeds them: products of 16x8 from 32 bytes of each row and column, fragments from shared
// memory, copies in the background. All of it needs sm_80; in code for older devices no kernel that uses it is chosen,
// and one that runs all the same stops there.
#pragma once

#include "backends/cuda/device/device.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define MF_TENSOR_CORES
#endif

namespace modelflow::cuda {

/// D += A B on one warp: m16n8k16, A row-major, B column-major, sums in float32; registers as in the PTX manual.
__device__ inline void mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], Half) {
#if defined(MF_TENSOR_CORES)
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::mma_16x8x16<Half>(d, a, b);
#endif
}
__device__ inline void mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], BFloat16) {
#if defined(MF_TENSOR_CORES)
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::mma_16x8x16<BFloat16>(d, a, b);
#endif
}

/// The same of 8-bit numbers, m16n8k32: those of A have no sign, those of B have one; sums in int32.
__device__ inline void mma(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                           std::uint8_t) {
#if defined(MF_TENSOR_CORES)
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::mma_16x8x32(d, a, b);
#endif
}

/// What products of these numbers are summed in.
template <class T>
struct Sums {
  using Type = float;
};
template <>
struct Sums<std::uint8_t> {
  using Type = std::int32_t;
};
template <class T>
using SumOf = typename Sums<T>::Type;

/// Four 8x8 matrices of 16-bit numbers, or of pairs of bytes, from shared memory: lane i names row i % 8 of matrix
/// i / 8, and gets two neighbours of a row of each; transposed, of a column.
template <bool transposed>
__device__ inline void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) {
#if defined(MF_TENSOR_CORES)
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
  }
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::ldmatrix_x4(r, row, transposed);
#endif
}

/// 16 bytes to shared memory in the background: the first `bytes` from global memory (aligned to 16), the rest zeros.
__device__ inline void copy_async_16(void* shared, const void* global, int bytes) {
#if defined(MF_TENSOR_CORES)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(bytes));
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::copy_async(shared, global, static_cast<unsigned>(bytes), 16);
#endif
}
/// 8 bytes, or zeros for none.
__device__ inline void copy_async_8(void* shared, const void* global, int bytes) {
#if defined(MF_TENSOR_CORES)
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global), "r"(bytes));
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::copy_async(shared, global, static_cast<unsigned>(bytes), 8);
#endif
}
__device__ inline void copy_async_commit() {
#if defined(MF_TENSOR_CORES)
  asm volatile("cp.async.commit_group;");
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::copy_async_commit();
#endif
}
template <int pending>
__device__ inline void copy_async_wait() {
#if defined(MF_TENSOR_CORES)
  asm volatile("cp.async.wait_group %0;" ::"n"(pending));
#elif defined(__CUDACC__)
  __trap();
#else
  emulated::copy_async_wait(pending);
#endif
}

}  // namespace modelflow::cuda
