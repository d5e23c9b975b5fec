# Every version and checksum that tools/setup relies on, in one place.
# Sourced by tools/setup; the Python packages are pinned in the *.lock files next to this one.
# shellcheck shell=bash disable=SC2034

readonly ONEDNN_VERSION=3.7.2
readonly ONEDNN_DEBIAN=3.7.2+ds-2
readonly ONEDNN_ORIG=onednn_3.7.2+ds.orig.tar.xz
readonly ONEDNN_SHA256=0cc51ca26c1af6a2bb1e71e378e7046f3ceb3e71791ee9d4e246d50f904a6ea6

readonly PROTOBUF_VERSION=3.21.12
readonly PROTOBUF_DEBIAN=3.21.12-3+deb12u1
readonly PROTOBUF_ORIG=protobuf_3.21.12.orig.tar.gz
readonly PROTOBUF_SHA256=930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53

readonly FMT_VERSION=9.1.0
readonly FMT_DEBIAN=9.1.0+ds1-2
readonly FMT_ORIG=fmtlib_9.1.0+ds1.orig.tar.gz
readonly FMT_SHA256=84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583

readonly ONNX_VERSION=1.23.2
readonly ONNX_SHA256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8

readonly ORT_HEADERS_VERSION=1.21.0
readonly ORT_HEADERS_DEBIAN=1.21.0+dfsg-1
readonly ORT_HEADERS_SHA256=14f7d959d5deacbcf1504830d4189f91fc67382b399ed9ae9d3aa9c4050ced08
readonly ORT_OLDEST_VERSION=1.21.1

# Debian packages of the release the machine runs (tried on bookworm).
SYSTEM_PACKAGES=(
  build-essential dpkg-dev cmake ninja-build ccache pkgconf git ca-certificates
  python3 python3-venv
  protobuf-compiler
  libcli11-dev nlohmann-json3-dev libxxhash-dev libminizip-dev zlib1g-dev libeigen3-dev libgtest-dev
  fonts-dejavu-core fonts-liberation
)
