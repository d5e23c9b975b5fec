// The kernels of NVIDIA GPUs, best first within each op. What an optimizer would choose can be asked on any machine; to
// run them takes the library of device code (library.h).
#pragma once

#include <array>
#include <memory>
#include <type_traits>

#include "backends/cuda/library.h"
#include "modelflow/kernel.h"

namespace modelflow::cuda {

/// Throws Error(unsupported) with the reason where there is none.
inline const DeviceLibrary& library_at_hand() {
  std::string why;
  const DeviceLibrary* library = device_library(&why);
  if (!library) throw Error(ErrorKind::unsupported, "no CUDA device to run on: " + why);
  return *library;
}

/// A kernel's `create` for an implementation that is made of the call and the library, and of the target where it asks.
template <class T>
std::unique_ptr<Implementation> create(const Call& call, const Target& target) {
  if constexpr (std::is_constructible_v<T, const Call&, const DeviceLibrary&, const Target&>) {
    return std::make_unique<T>(call, library_at_hand(), target);
  } else {
    return std::make_unique<T>(call, library_at_hand());
  }
}

extern const Kernel attention, channel_attention, conv, conv_transpose, matmul, matmul_nbits, talking_heads;
extern const Kernel gru, lstm;
extern const Kernel activation, column_embedding, concat, embedding, group_norm, interpolate, layer_norm, pointwise,
    pointwise_scan, pool, reduce, rotary, scatter_add, selective_scan, softmax, squeeze_excite, transpose, upsample;
extern const Kernel dequantize, qadd, qconv, qmatmul, qpool, qsqueeze_excite, quantize, qupsample;

inline constexpr std::array kKernels = {
    &attention,
    &channel_attention,
    &talking_heads,
    &matmul,
    &matmul_nbits,
    &conv,
    &conv_transpose,
    &activation,
    &column_embedding,
    &concat,
    &embedding,
    &group_norm,
    &layer_norm,
    &pointwise,
    &pointwise_scan,
    &pool,
    &reduce,
    &rotary,
    &scatter_add,
    &selective_scan,
    &softmax,
    &squeeze_excite,
    &transpose,
    &upsample,
    &interpolate,
    &dequantize,
    &qadd,
    &qconv,
    &qmatmul,
    &qpool,
    &qsqueeze_excite,
    &gru,
    &lstm,
    &quantize,
    &qupsample,
};

}  // namespace modelflow::cuda
