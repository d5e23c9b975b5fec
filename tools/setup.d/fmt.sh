# fmt, static and position independent: Debian packages a shared library, which users of ours would have to have, and headers
# that compile all of fmt into each source that includes them: 3 to 5 s in each of 35.
# shellcheck shell=bash

FMT_OPTIONS=("${LIBRARY_OPTIONS[@]}" "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" -DBUILD_SHARED_LIBS=OFF -DFMT_DOC=OFF -DFMT_TEST=OFF)

fmt_paths() { FMT_PREFIX="$DEPS/fmt-$FMT_VERSION-$(hash_of "$FMT_SHA256" "${FMT_OPTIONS[@]}")"; }

install_fmt() {
  is_done "$FMT_PREFIX" && { ready; return; }
  rm -rf "$FMT_PREFIX"
  debian_source fmtlib "$FMT_DEBIAN" "$FMT_ORIG" "$FMT_SHA256"
  unpack_debian_source fmtlib "$FMT_DEBIAN" "$WORK/fmt-source"
  cmake_build fmt "$WORK/fmt-source" "$FMT_PREFIX" all "${FMT_OPTIONS[@]}"
  run_logged fmt-install "$CMAKE" --install "$WORK/fmt"
  mark_done "$FMT_PREFIX"
  rm -rf "${WORK:?}/fmt" "$WORK/fmt-source"
}
