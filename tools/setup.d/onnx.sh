# protobuf-lite and libonnx, static and position independent, to disappear inside libmodelflow.so.
#
# The lite runtime is all that reading and writing takes, a third of the files to compile, and has no descriptor pool.
# Debian's own libprotobuf-lite.a is not position independent (its thread-local arena cache uses a relocation that a
# shared object cannot have), and its shared library must not be used either: static and hidden, Python's onnx or
# ONNX Runtime may sit in the same process with a protobuf of their own.
# shellcheck shell=bash

LIBRARY_FLAGS="-fvisibility=hidden -fvisibility-inlines-hidden"
LIBRARY_OPTIONS=(
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  "-DCMAKE_CXX_FLAGS=$LIBRARY_FLAGS"
)
PROTOBUF_OPTIONS=(
  "${LIBRARY_OPTIONS[@]}" "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -Wno-dev -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF
  -Dprotobuf_WITH_ZLIB=OFF -Dprotobuf_BUILD_SHARED_LIBS=OFF
)
# Schemas and shape functions take microseconds; nothing here is worth the time of -O2.
ONNX_OPTIONS=(
  "${LIBRARY_OPTIONS[@]}" "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" "-DPRECOMPILE=onnx=onnx/defs/schema.h" -DONNX_ML=ON -DONNX_USE_LITE_PROTO=ON -DONNX_BUILD_PYTHON=OFF -DONNX_GEN_PB_TYPE_STUBS=OFF -DONNX_USE_PROTOBUF_SHARED_LIBS=OFF
)

onnx_paths() {
  PROTOBUF_PREFIX="$DEPS/protobuf-lite-$PROTOBUF_VERSION-$(hash_of "$PROTOBUF_DEBIAN" "${PROTOBUF_OPTIONS[@]}")"
  ONNX_PREFIX="$DEPS/onnx-$ONNX_VERSION-$(hash_of "$ONNX_SHA256" "$PROTOBUF_PREFIX" "${ONNX_OPTIONS[@]}")"
}

# Debian's package has no CMake config, and upstream's wants all its libraries built; this one names what is there.
write_protobuf_config() {
  mkdir -p "$PROTOBUF_PREFIX/lib/cmake/protobuf"
  cat > "$PROTOBUF_PREFIX/lib/cmake/protobuf/protobuf-config.cmake" <<'CONFIG'
# Written by tools/setup: Debian's protobuf, rebuilt static and position independent; protoc is Debian's.
set(Protobuf_VERSION 3.21.12)
get_filename_component(_protobuf_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)
if(NOT TARGET protobuf::libprotobuf-lite)
  add_library(protobuf::libprotobuf-lite STATIC IMPORTED)
  set_target_properties(protobuf::libprotobuf-lite PROPERTIES
    IMPORTED_LOCATION "${_protobuf_root}/lib/libprotobuf-lite.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_protobuf_root}/include"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
if(NOT TARGET protobuf::protoc)
  find_program(Protobuf_PROTOC_EXECUTABLE protoc REQUIRED)
  add_executable(protobuf::protoc IMPORTED)
  set_target_properties(protobuf::protoc PROPERTIES IMPORTED_LOCATION "${Protobuf_PROTOC_EXECUTABLE}")
endif()
CONFIG
}

install_protobuf() {
  is_done "$PROTOBUF_PREFIX" && { ready; return; }
  rm -rf "$PROTOBUF_PREFIX"
  debian_source protobuf "$PROTOBUF_DEBIAN" "$PROTOBUF_ORIG" "$PROTOBUF_SHA256"
  unpack_debian_source protobuf "$PROTOBUF_DEBIAN" "$WORK/protobuf-source"
  cmake_build protobuf "$WORK/protobuf-source" "$PROTOBUF_PREFIX" libprotobuf-lite "${PROTOBUF_OPTIONS[@]}"
  run_logged protobuf-install "$CMAKE" --install "$WORK/protobuf" --component libprotobuf-lite
  run_logged protobuf-headers "$CMAKE" --install "$WORK/protobuf" --component protobuf-headers
  write_protobuf_config
  mark_done "$PROTOBUF_PREFIX"
  rm -rf "${WORK:?}/protobuf" "$WORK/protobuf-source"
}

# PyPI's source distribution, through the index that pip is configured with.
download_onnx() {
  local file="$DOWNLOADS/onnx-$ONNX_VERSION.tar.gz"
  mkdir -p "$DOWNLOADS"
  [ -f "$file" ] ||
    HINT=$PIP_HINT run_logged onnx-download "$PYTHON" -m pip download --disable-pip-version-check --no-input --no-deps \
      --no-binary onnx --dest "$DOWNLOADS" "onnx==$ONNX_VERSION"
  verify_sha256 "$file" "$ONNX_SHA256"
  rm -rf "$WORK/onnx-source"
  mkdir -p "$WORK/onnx-source"
  tar -xf "$file" -C "$WORK/onnx-source" --strip-components=1
}

install_onnx() {
  is_done "$ONNX_PREFIX" && { ready; return; }
  rm -rf "$ONNX_PREFIX"
  download_onnx
  cmake_build onnx "$WORK/onnx-source" "$ONNX_PREFIX" all "${ONNX_OPTIONS[@]}" \
    "-DProtobuf_LIBRARY=$PROTOBUF_PREFIX/lib/libprotobuf-lite.a" \
    "-DProtobuf_LITE_LIBRARY=$PROTOBUF_PREFIX/lib/libprotobuf-lite.a" "-DProtobuf_INCLUDE_DIR=$PROTOBUF_PREFIX/include" \
    "-DPython3_EXECUTABLE=$PYTHON"
  run_logged onnx-install "$CMAKE" --install "$WORK/onnx"
  mark_done "$ONNX_PREFIX"
  rm -rf "${WORK:?}/onnx" "$WORK/onnx-source"
}
