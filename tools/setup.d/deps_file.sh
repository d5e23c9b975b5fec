# The result: deps.cmake for CMake, deps.env for shell scripts. Both name full paths and are written last.
# shellcheck shell=bash

ort_library_of() { find "$1/onnxruntime/capi" -name 'libonnxruntime.so.*' 2>/dev/null | head -n 1; }

deps_paths() {
  DEPS_CMAKE="$DEPS/deps.cmake"
  DEPS_ENV="$DEPS/deps.env"
}

replace_if_changed() {
  if [ -f "$1" ] && cmp -s "$1" "$1.new"; then rm -f "$1.new"; else mv "$1.new" "$1"; fi
}

write_deps() {
  local site ort oldest
  site=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  ort=$(ort_library_of "$site")
  oldest=$(ort_library_of "$ORT_OLDEST")
  [ -n "$ort" ] || die "no libonnxruntime.so.* in the onnxruntime wheel under $site"
  [ -n "$oldest" ] || die "no libonnxruntime.so.* in $ORT_OLDEST"
  cat > "$DEPS_CMAKE.new" <<CMAKE
# Written by tools/setup: where the dependencies of ModelFlow are. Run tools/setup again rather than edit this.
list(PREPEND CMAKE_PREFIX_PATH "$ONEDNN_PREFIX" "$ONNX_PREFIX" "$PROTOBUF_PREFIX" "$FMT_PREFIX")
set(MODELFLOW_DEPS_DIR "$DEPS")
set(ONNXRUNTIME_INCLUDE_DIR "$ORT_INCLUDE")
set(ONNXRUNTIME_LIBRARY_PATH "$ort")
set(MODELFLOW_OLDEST_ORT_LIBRARY_PATH "$oldest")
set(MODELFLOW_OLDEST_ORT_PYTHONPATH "$ORT_OLDEST")
set(Python_EXECUTABLE "$PYTHON")
set(Python3_EXECUTABLE "$PYTHON")
$(cuda_deps)
CMAKE
  cat > "$DEPS_ENV.new" <<ENV
# Written by tools/setup, for shell scripts: . deps.env
MODELFLOW_DEPS_CMAKE="$DEPS_CMAKE"
MODELFLOW_CMAKE="$CMAKE"
MODELFLOW_PYTHON="$PYTHON"
MODELFLOW_VENV="$VENV"
MODELFLOW_ORT_LIBRARY="$ort"
MODELFLOW_OLDEST_ORT_LIBRARY="$oldest"
MODELFLOW_OLDEST_ORT_PYTHONPATH="$ORT_OLDEST"
ENV
  replace_if_changed "$DEPS_CMAKE"
  replace_if_changed "$DEPS_ENV"
}
