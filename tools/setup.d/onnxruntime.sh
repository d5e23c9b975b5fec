# ONNX Runtime's C headers, of the oldest supported version. The library itself comes from the Python wheel.
# shellcheck shell=bash

ort_headers_paths() {
  ORT_HEADERS="$DEPS/onnxruntime-headers-$ORT_HEADERS_VERSION"
  ORT_INCLUDE="$ORT_HEADERS/usr/include/onnxruntime"
}

install_ort_headers() {
  is_done "$ORT_HEADERS" && { ready; return; }
  local deb="$DOWNLOADS/libonnxruntime-dev_${ORT_HEADERS_DEBIAN}_amd64.deb"
  mkdir -p "$DOWNLOADS"
  if [ ! -f "$deb" ]; then
    prepare_private_apt
    ( cd "$DOWNLOADS" && run_logged ort-headers-download private_apt download "libonnxruntime-dev=$ORT_HEADERS_DEBIAN" )
  fi
  verify_sha256 "$deb" "$ORT_HEADERS_SHA256"
  rm -rf "$ORT_HEADERS"
  mkdir -p "$ORT_HEADERS"
  dpkg-deb -x "$deb" "$ORT_HEADERS"
  [ -f "$ORT_INCLUDE/onnxruntime_c_api.h" ] || die "onnxruntime_c_api.h is not where it was expected in $deb"
  mark_done "$ORT_HEADERS"
}
