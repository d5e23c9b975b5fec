# oneDNN: static, cut down to what the CPU kernels call (convolution, matmul, reorder, brgemm ukernels).
#
# Four things turn 67 CPU minutes into a quarter. What runs hot is machine code that oneDNN emits at run time, so large
# convolutions and matmuls still reach 150 GFLOP/s fp32 per Cascade Lake core:
#   - only three kinds of primitive and only inference are registered;
#   - of these, only what we call stays (onednn_sources.sh; the link check below proves that nothing else is needed);
#   - the C++ that remains is compiled with -O1;
#   - headers that most of it reads are precompiled.
# shellcheck shell=bash

# shellcheck disable=SC2054 # the comma is the assembler's
ONEDNN_OPTIONS=(
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  "-DCMAKE_CXX_FLAGS=-fvisibility=hidden -fvisibility-inlines-hidden"
  "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"
  -DONEDNN_LIBRARY_TYPE=STATIC -DONEDNN_CPU_RUNTIME=THREADPOOL -DONEDNN_EXPERIMENTAL_UKERNEL=ON
  -DONEDNN_ENABLE_WORKLOAD=INFERENCE "-DONEDNN_ENABLE_PRIMITIVE=CONVOLUTION;MATMUL;REORDER"
  -DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE -DONEDNN_BUILD_GRAPH=OFF
  -DONEDNN_BUILD_TESTS=OFF -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_DOC=OFF -DONEDNN_ARCH_OPT_FLAGS=
  "-DPRECOMPILE=dnnl_common=src/common/primitive_desc.hpp;dnnl_cpu=src/cpu/cpu_primitive.hpp;dnnl_cpu_x64=src/cpu/x64/injectors/jit_uni_postops_injector.hpp=src/cpu/cpu_primitive.hpp"
  -DCMAKE_ASM_FLAGS=-Wa,--noexecstack # one assembler file does not say so itself, and the plugin would get an executable stack
)

onednn_paths() {
  ONEDNN_PREFIX="$DEPS/onednn-$ONEDNN_VERSION-$(hash_of "$ONEDNN_SHA256" "${ONEDNN_OPTIONS[@]}" "${ONEDNN_UNUSED[@]}" \
    "${ONEDNN_EMPTY_REORDERS[@]}" "$(declare -f shorten_lists empty_reorders)")"
}

# Whole archive: every object that was built must find what it refers to, reached by a test or not.
check_onednn() {
  g++ -std=c++17 -O1 -I "$ONEDNN_PREFIX/include" "$HERE/setup.d/onednn_check.cpp" -o "$WORK/onednn-check" \
    -Wl,--whole-archive "$ONEDNN_PREFIX/lib/libdnnl.a" -Wl,--no-whole-archive -lpthread -ldl &&
  "$WORK/onednn-check"
}

install_onednn() {
  is_done "$ONEDNN_PREFIX" && { ready; return; }
  rm -rf "$ONEDNN_PREFIX"
  debian_source onednn "$ONEDNN_DEBIAN" "$ONEDNN_ORIG" "$ONEDNN_SHA256"
  unpack_debian_source onednn "$ONEDNN_DEBIAN" "$WORK/onednn-source"
  keep_what_runs "$WORK/onednn-source"
  say "      compiling takes about 8 minutes on 2 cores"
  cmake_build onednn "$WORK/onednn-source" "$ONEDNN_PREFIX" all "${ONEDNN_OPTIONS[@]}"
  run_logged onednn-install "$CMAKE" --install "$WORK/onednn"
  run_logged onednn-check check_onednn
  mark_done "$ONEDNN_PREFIX"
  rm -rf "${WORK:?}/onednn" "$WORK/onednn-source" "$WORK/onednn-check"
}
