# oneDNN: static, cut down to what the CPU kernels call (convolution, deconvolution, matmul, reorder, brgemm ukernels).
#
# Four things turn 67 CPU minutes into about 24. What runs hot is machine code that oneDNN emits at run time, so large
# convolutions and matmuls still reach 150 GFLOP/s fp32 and 530 GOP/s u8s8 per Cascade Lake core:
#   - only four kinds of primitive and only inference are registered;
#   - source files that then nothing refers to are left out (the link check below proves it);
#   - the C++ that remains is compiled with -O1;
#   - headers that most of it reads are precompiled.
# shellcheck shell=bash

# shellcheck disable=SC2054 # the comma is the assembler's
ONEDNN_OPTIONS=(
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  "-DCMAKE_CXX_FLAGS=-fvisibility=hidden -fvisibility-inlines-hidden"
  "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"
  -DONEDNN_LIBRARY_TYPE=STATIC -DONEDNN_CPU_RUNTIME=THREADPOOL -DONEDNN_EXPERIMENTAL_UKERNEL=ON
  -DONEDNN_ENABLE_WORKLOAD=INFERENCE "-DONEDNN_ENABLE_PRIMITIVE=CONVOLUTION;DECONVOLUTION;MATMUL;REORDER"
  -DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE -DONEDNN_BUILD_GRAPH=OFF
  -DONEDNN_BUILD_TESTS=OFF -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_DOC=OFF -DONEDNN_ARCH_OPT_FLAGS=
  "-DPRECOMPILE=dnnl_common=src/common/primitive_desc.hpp;dnnl_cpu=src/cpu/cpu_primitive.hpp;dnnl_cpu_x64=src/cpu/x64/injectors/jit_uni_postops_injector.hpp=src/cpu/cpu_primitive.hpp"
  -DCMAKE_ASM_FLAGS=-Wa,--noexecstack # one assembler file does not say so itself, and the plugin would get an executable stack
)

# Folders (all their .cpp) and files under src/cpu that the registered primitives never reach.
ONEDNN_UNUSED_FOLDERS=(rnn x64/rnn x64/lrn x64/prelu x64/shuffle aarch64 ppc64 rv64 s390x sycl)
ONEDNN_UNUSED_FILES=(
  '*pooling.cpp' 'x64/*pooling*.cpp' 'x64/jit_uni_pool_kernel.cpp'
  '*normalization.cpp' 'cpu_batch_normalization_utils.cpp' 'x64/*normalization*.cpp' 'x64/jit_uni_tbb*.cpp'
  'ref_lrn.cpp' 'ref_prelu.cpp' 'ref_shuffle.cpp' 'ref_reduction.cpp' 'x64/jit_uni_reduction.cpp'
  '*resampling.cpp' 'x64/*resampling*.cpp' 'ref_softmax.cpp' 'x64/*softmax*.cpp'
  'ref_eltwise.cpp' 'x64/jit_uni_eltwise.cpp' 'x64/jit_uni_eltwise_int.cpp' 'ref_binary.cpp' 'x64/jit_uni_binary.cpp'
  '*inner_product.cpp' 'ref_inner_product*.cpp' 'x64/*inner_product.cpp' 'x64/jit_brgemm_conv_bwd_w.cpp'
)

onednn_paths() {
  ONEDNN_PREFIX="$DEPS/onednn-$ONEDNN_VERSION-$(hash_of "$ONEDNN_SHA256" "${ONEDNN_OPTIONS[@]}" "${ONEDNN_UNUSED_FOLDERS[@]}" "${ONEDNN_UNUSED_FILES[@]}")"
}

drop_unused_sources() {
  local cpu=$1/src/cpu path folder name
  for path in "${ONEDNN_UNUSED_FOLDERS[@]}"; do
    find "$cpu/$path" -name '*.cpp' -delete
  done
  for path in "${ONEDNN_UNUSED_FILES[@]}"; do
    folder=$cpu; name=$path
    [[ $path != x64/* ]] || { folder=$cpu/x64; name=${path#x64/}; }
    find "$folder" -maxdepth 1 -name "$name" ! -name 'cpu_*_list.cpp' -delete
  done
}

# Whole archive: every object that was built must find what it refers to, reached by a test or not.
check_onednn() {
  g++ -std=c++17 -O1 -I "$ONEDNN_PREFIX/include" "$HERE/setup.d/onednn_check.cpp" -o "$WORK/onednn-check" \
    -Wl,--whole-archive "$ONEDNN_PREFIX/lib/libdnnl.a" -Wl,--no-whole-archive -lpthread -ldl
  "$WORK/onednn-check"
}

install_onednn() {
  is_done "$ONEDNN_PREFIX" && { ready; return; }
  rm -rf "$ONEDNN_PREFIX"
  debian_source onednn "$ONEDNN_DEBIAN" "$ONEDNN_ORIG" "$ONEDNN_SHA256"
  unpack_debian_source onednn "$WORK/onednn-source"
  drop_unused_sources "$WORK/onednn-source"
  say "      compiling takes about 12 minutes on 2 cores"
  cmake_build onednn "$WORK/onednn-source" "$ONEDNN_PREFIX" all "${ONEDNN_OPTIONS[@]}"
  run_logged onednn-install "$CMAKE" --install "$WORK/onednn"
  run_logged onednn-check check_onednn
  mark_done "$ONEDNN_PREFIX"
  rm -rf "${WORK:?}/onednn" "$WORK/onednn-source" "$WORK/onednn-check"
}
