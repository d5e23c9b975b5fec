# GPU code: the compiler, where none is installed, and what its tests need: the CUDA provider of ONNX Runtime, cuobjdump.
# shellcheck shell=bash disable=SC2034

cuda_paths() {
  local locks="$HERE/setup.d"
  CUDA_COMPILER="$DEPS/cuda-13.0-$(hash_of "$(cat "$locks/python-cuda.lock")")"
  CUDA_TESTS="$DEPS/cuda-tests-$(hash_of "$(cat "$locks/python-cuda-tests.lock")")"
  INSTALLED_NVCC=$(command -v nvcc || true)
  [ -n "$INSTALLED_NVCC" ] || [ ! -x /usr/local/cuda/bin/nvcc ] || INSTALLED_NVCC=/usr/local/cuda/bin/nvcc
  [ -z "${MODELFLOW_CUDA_WHEELS:-}" ] || INSTALLED_NVCC= # as if none were installed
}

# What is missing of it, a path a line.
missing_cuda() {
  [ -n "$INSTALLED_NVCC" ] || is_done "$CUDA_COMPILER" || printf '%s\n' "$CUDA_COMPILER"
  is_done "$CUDA_TESTS" || printf '%s\n' "$CUDA_TESTS"
}

install_cuda() {
  [ -n "$(missing_cuda)" ] || { ready; return; }
  [ -n "$INSTALLED_NVCC" ] || install_cuda_compiler
  is_done "$CUDA_TESTS" && return
  rm -rf "$CUDA_TESTS"
  HINT=$PIP_HINT run_logged pip-cuda-tests pip_locked --target "$CUDA_TESTS" -r "$HERE/setup.d/python-cuda-tests.lock"
  chmod +x "$CUDA_TESTS"/nvidia/cu13/bin/*
  mark_done "$CUDA_TESTS"
}

# The wheels share a folder that lacks what makes it a toolkit: lib64, names without versions, a driver to link with.
install_cuda_compiler() {
  is_done "$CUDA_COMPILER" && return
  rm -rf "$CUDA_COMPILER"
  HINT=$PIP_HINT run_logged pip-cuda pip_locked --target "$CUDA_COMPILER" -r "$HERE/setup.d/python-cuda.lock"
  local toolkit="$CUDA_COMPILER/nvidia/cu13" file name
  ln -sfn lib "$toolkit/lib64"
  for file in "$toolkit"/lib/*.so.*; do
    name=$(basename "$file")
    ln -sfn "$name" "$toolkit/lib/${name%%.so.*}.so"
  done
  mkdir -p "$toolkit/lib/stubs"
  echo 'void cuInit(void) {}' | cc -shared -fPIC -x c - -Wl,-soname,libcuda.so.1 -o "$toolkit/lib/stubs/libcuda.so"
  chmod +x "$toolkit"/bin/* "$toolkit"/nvvm/bin/*
  "$toolkit/bin/nvcc" --version > /dev/null || die "the CUDA compiler was installed but does not run"
  mark_done "$CUDA_COMPILER"
}

# Lines of deps.cmake, for what is there.
cuda_deps() {
  local toolkit="$CUDA_COMPILER/nvidia/cu13"
  if [ -n "$INSTALLED_NVCC" ]; then
    toolkit=$(dirname "$(dirname "$(readlink -f "$INSTALLED_NVCC")")")
  elif is_done "$CUDA_COMPILER"; then
    echo "set(MODELFLOW_CUDA_COMPILER \"$toolkit/bin/nvcc\")"
  fi
  [ ! -d "$toolkit/include" ] || echo "set(MODELFLOW_CUDA_INCLUDE \"$toolkit/include\")"
  is_done "$CUDA_TESTS" || return 0
  echo "set(MODELFLOW_ORT_GPU \"$CUDA_TESTS\")"
  echo "set(MODELFLOW_CUOBJDUMP \"$CUDA_TESTS/nvidia/cu13/bin/cuobjdump\")"
}
