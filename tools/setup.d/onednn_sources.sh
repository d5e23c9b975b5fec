# What stays of oneDNN's sources: forward convolution and matmul in float32 and bfloat16, and their reorders, on AVX2,
# AVX-512 and AMX. Everything else is taken out of the lists of implementations, and then nothing refers to its files.
# shellcheck shell=bash

# Files (folders: all their .cpp) under src/cpu that then nothing refers to; the link check proves it.
ONEDNN_UNUSED=(
  rnn x64/rnn x64/lrn x64/prelu x64/shuffle aarch64 ppc64 rv64 s390x sycl
  '*pooling.cpp' 'x64/*pooling*.cpp' 'x64/jit_uni_pool_kernel.cpp'
  '*normalization.cpp' 'cpu_batch_normalization_utils.cpp' 'x64/*normalization*.cpp' 'x64/jit_uni_tbb*.cpp'
  'ref_lrn.cpp' 'ref_prelu.cpp' 'ref_shuffle.cpp' 'ref_reduction.cpp' 'x64/jit_uni_reduction*.cpp'
  '*resampling*.cpp' 'x64/*resampling*.cpp' 'ref_softmax.cpp' 'x64/*softmax*.cpp'
  'ref_eltwise.cpp' 'x64/jit_uni_eltwise.cpp' 'x64/jit_uni_eltwise_int.cpp' 'ref_binary.cpp' 'x64/jit_uni_binary*.cpp'
  'simple_sum.cpp' 'simple_concat.cpp' 'x64/jit_uni_xf16_sum.cpp'
  '*inner_product.cpp' 'ref_inner_product*.cpp' 'x64/*inner_product.cpp' 'x64/ip_convolution.cpp'
  '*deconv*.cpp' 'x64/*deconv*.cpp' 'x64/jit_brgemm_conv_bwd*.cpp'
  '*x8s8s32x*.cpp' 'x64/*x8s8s32x*.cpp' 'ref_convolution_int8.cpp' 'matmul/ref_matmul_int8.cpp'
  'matmul/gemm_bf16*.cpp' 'matmul/*sparse*.cpp' 'x64/matmul/*sparse*.cpp'
  'x64/jit_sse41*.cpp' 'x64/jit_avx512_common_1x1*.cpp' 'x64/jit_avx512_common_conv*.cpp'
  'x64/jit_avx512_core_amx_1x1*.cpp' 'x64/jit_avx512_core_amx_convolution.cpp' 'x64/jit_avx512_core_bf16_1x1*.cpp'
  'x64/jit_avx512_core_bf16_conv*.cpp' 'x64/gemm_bf16_convolution.cpp'
  'x64/jit_uni_ncsp_convolution.cpp'
)

# Kinds of reorders that are left empty: from or to types that no kernel of ours gives oneDNN.
ONEDNN_EMPTY_REORDERS=(comp_bf16_s8 comp_f32_s8 comp_s8_s8 regular_f16 regular_f32_f16 regular_f32_fp8 regular_f32_s32
  regular_f32_s8 regular_f32_u8 regular_fp4 regular_fp8 regular_s32 regular_s4 regular_s8 regular_u4 regular_u8)

empty_reorders() {
  local kind
  for kind in "${ONEDNN_EMPTY_REORDERS[@]}"; do
    printf '#include "cpu/reorder/cpu_reorder.hpp"\n%s\n' "namespace dnnl::impl::cpu {
const impl_list_map_t &${kind}_impl_list_map() {
  static const impl_list_map_t none;
  return none;
}
}" > "$1/src/cpu/reorder/cpu_reorder_$kind.cpp"
  done
}

# The list of convolutions begins with forward in float32 and bfloat16; with float16 begins what is of no use here. The
# matmul by gemm_f32 stands before the one for AVX2, but without GEMM kernels it is a plain loop (5 GFLOP/s): behind it.
shorten_lists() {
  local cpu=$1/src/cpu
  sed -i -e '/{{forward, f16, f16, f32}, {/,/^    });$/{/^    });$/!d}' \
    -e '/CPU_INSTANCE_SSE41(/d' -e '/(ip_convolution/d' -e '/(jit_uni_ncsp_/d' -e '/(gemm_bf16_/d' -e '/(ref_fused_/d' \
    -e '/(jit_avx512_common_1x1_/d' -e '/(jit_avx512_common_convolution_/d' -e '/(jit_avx512_core_/d' \
    "$cpu/cpu_convolution_list.cpp"
  sed -i -e '/CPU_INSTANCE(gemm_/d' -e '/CPU_INSTANCE(ref_matmul_int8_t)/d' \
    -e 's/CPU_INSTANCE(ref_matmul_t)/CPU_INSTANCE(gemm_f32_matmul_t)\n        &/' "$cpu/matmul/cpu_matmul_list.cpp"
}

# Debian's patch asks for spdlog even where the log that it writes is left out.
without_log_library() { sed -i -e '/^find_package(spdlog REQUIRED)$/d' "$1/src/CMakeLists.txt"; }

keep_what_runs() {
  local path folder
  for path in "${ONEDNN_UNUSED[@]}"; do
    folder=$1/src/cpu/$path
    if [ -d "$folder" ]; then
      find "$folder" -name '*.cpp' -delete
    else
      find "$(dirname "$folder")" -maxdepth 1 -name "$(basename "$folder")" ! -name 'cpu_*_list.cpp' -delete
    fi
  done
  shorten_lists "$1"
  empty_reorders "$1"
  without_log_library "$1"
}
