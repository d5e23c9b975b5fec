# Python: one environment with everything pinned by hash, and the oldest supported ONNX Runtime beside it.
# shellcheck shell=bash disable=SC2034

python_paths() {
  local locks="$HERE/setup.d"
  BASE_PYTHON=/usr/bin/python3 # Debian's, whatever else comes first on PATH
  VENV="$SETUP_CACHE/venv-$(hash_of "$(cat "$locks/python.lock" "$locks/python-nodeps.lock")" "$BASE_PYTHON")"
  PYTHON="$VENV/bin/python"
  CMAKE="$VENV/bin/cmake"
  ORT_OLDEST="$DEPS/onnxruntime-$ORT_OLDEST_VERSION-$(hash_of "$(cat "$locks/python-oldest.lock")")"
}

PIP_HINT="this needs the Python package index that pip is configured with (pip config list)"

pip_locked() {
  "$PYTHON" -m pip install --disable-pip-version-check --no-input --no-deps --require-hashes --only-binary :all: "$@"
}

install_venv() {
  is_done "$VENV" && { ready; return; }
  "$BASE_PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
    die "the Python packages are pinned for CPython 3.11; $BASE_PYTHON is $("$BASE_PYTHON" --version)"
  rm -rf "$VENV"
  mkdir -p "$SETUP_CACHE"
  run_logged venv "$BASE_PYTHON" -m venv "$VENV"
  HINT=$PIP_HINT run_logged pip pip_locked -r "$HERE/setup.d/python.lock"
  HINT=$PIP_HINT run_logged pip-nodeps pip_locked -r "$HERE/setup.d/python-nodeps.lock"
  "$PYTHON" -c 'import cv2, numpy, onnx, onnxruntime, rapidocr_onnxruntime' ||
    die "the Python packages were installed but do not import; see above"
  mark_done "$VENV"
}

install_oldest_ort() {
  is_done "$ORT_OLDEST" && { ready; return; }
  rm -rf "$ORT_OLDEST"
  HINT=$PIP_HINT run_logged pip-oldest pip_locked --target "$ORT_OLDEST" -r "$HERE/setup.d/python-oldest.lock"
  mark_done "$ORT_OLDEST"
}

# A small environment with what only one tool needs (NAME, the lock file's too), and the usual one behind it.
# install_venv_beside NAME IMPORTS
install_venv_beside() {
  local lock="$HERE/setup.d/python-$1.lock" base=$VENV
  VENV="$SETUP_CACHE/$1-$(hash_of "$(cat "$lock")" "$base")"
  PYTHON="$VENV/bin/python"
  is_done "$VENV" && { ready; return; }
  rm -rf "$VENV"
  run_logged "$1-venv" "$BASE_PYTHON" -m venv "$VENV"
  printf '%s\n' "$base/lib/python3.11/site-packages" > "$VENV/lib/python3.11/site-packages/base.pth"
  HINT=$PIP_HINT run_logged "pip-$1" pip_locked -r "$lock"
  [ -z "$2" ] || "$PYTHON" -c "import $2" || die "the packages were installed but do not import; see above"
  mark_done "$VENV"
}

install_accuracy_venv() { install_venv_beside accuracy "nncf, openvino, sklearn, magika"; }
install_models_venv() { install_venv_beside models ""; }  # wanted for the files in the packages: none is imported
install_clients_venv() { install_venv_beside clients "librosa, sklearn, pyclipper, shapely"; }
install_torch_venv() { install_venv_beside torch "torch, onnxscript, skl2onnx"; }

# Where tests and tools look for it, whatever is in it: deps/extras.
install_extras_venv() {
  local base=$VENV python=$PYTHON
  install_venv_beside extras "mkdocs, material, uvicorn, starlette, prometheus_client, mypy, auditwheel"
  ln -sfn "$VENV" "$DEPS/extras"
  VENV=$base PYTHON=$python
}

# Beside torch: its environment sees no further one, so they lie in folders for PYTHONPATH. install_packages NAME (the lock file's) -> PACKAGES
install_packages() {
  local lock="$HERE/setup.d/python-$1.lock"
  PACKAGES="$SETUP_CACHE/$1-$(hash_of "$(cat "$lock")")"
  is_done "$PACKAGES" && { ready; return; }
  rm -rf "$PACKAGES"
  HINT=$PIP_HINT run_logged "pip-$1" pip_locked --target "$PACKAGES" -r "$lock"
  mark_done "$PACKAGES"
}
install_exports_packages() { install_packages exports; EXPORTS_PACKAGES=$PACKAGES; }
install_recipes_packages() { install_packages recipes; RECIPES_PACKAGES=$PACKAGES; }
