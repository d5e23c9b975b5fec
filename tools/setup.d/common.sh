# What every step uses: messages, the cache layout, running a long command with progress.
# shellcheck shell=bash disable=SC2034

QUIET=${QUIET:-0}
SETUP_CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/modelflow"
DEPS="$SETUP_CACHE/deps"
DOWNLOADS="$SETUP_CACHE/downloads"
WORK="$SETUP_CACHE/build"
LOGS="$SETUP_CACHE/logs"

say()  { announce_step; printf '%s\n' "$*"; }
warn() { printf 'setup: warning: %s\n' "$*" >&2; }
die()  { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# With --quiet, a step is named once it has something to do; a step that is ready says nothing.
STEP=
announce_step() { [ -z "$STEP" ] || printf '%s\n' "$STEP"; STEP=; }
step() {
  STEP="[$1/$STEPS] $2"
  [ "$QUIET" = 1 ] || announce_step
}
ready() {
  [ "$QUIET" = 1 ] || say "      ready"
  STEP=
}

# hash_of WORD... : a short name for a set of options.
hash_of() { printf '%s\n' "$@" | sha256sum | cut -c1-10; }

# One compiler per core and per GiB of free memory, which is what the largest files need.
jobs() {
  local n=${MODELFLOW_JOBS:-$(nproc)} by_memory
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 1024 / 1024)}' /proc/meminfo)
  [ "$n" -le "$by_memory" ] || n=$by_memory
  [ "$n" -ge 1 ] || n=1
  printf '%s' "$n"
}

# A prefix counts only when its stamp is there: a half-finished install is started again.
is_done()   { [ -f "$1/.modelflow-complete" ]; }
mark_done() { date -u +%Y-%m-%dT%H:%M:%SZ > "$1/.modelflow-complete"; }

verify_sha256() {
  local file=$1 want=$2 got
  got=$(sha256sum "$file" | cut -d' ' -f1)
  [ "$got" = "$want" ] && return
  rm -f "$file"
  die "$(basename "$file") has sha256 $got, expected $want; it was deleted. Run tools/setup again; if it stays so, the mirror serves another file than the one this project was tried with."
}

# tell_progress NAME LOG : a line every half minute, until it is killed or the script is gone.
tell_progress() {
  local start=$SECONDS last=$SECONDS line
  while sleep 1 > /dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    [ $(( SECONDS - last )) -ge 30 ] || continue
    last=$SECONDS
    line=$(grep -oE '^\[[0-9]+/[0-9]+\]' "$2" | tail -n 1) || true
    say "      $1 ${line:-...} $(( SECONDS - start )) s"
  done
}

# run_logged NAME COMMAND... : quiet on success; progress while it runs; the end of the log, and $HINT, on failure.
# The command is not in the background, where bash lets nothing hear Ctrl-C, and does not hold the lock of tools/setup (9).
run_logged() {
  local name=$1 log="$LOGS/$1.log" teller failed=0
  shift
  mkdir -p "$LOGS"
  announce_step
  : > "$log"
  tell_progress "$name" "$log" 9>&- &
  teller=$!
  trap 'kill "$teller" 2>/dev/null || true; exit 130' INT  # once the command has ended
  "$@" > "$log" 2>&1 < /dev/null 9>&- || failed=1
  trap - INT
  { kill "$teller" && wait "$teller"; } 2>/dev/null || true
  [ "$failed" = 1 ] || return 0
  printf 'setup: error: %s failed; the end of %s:\n' "$name" "$log" >&2
  grep -nE 'error:|Error|FAILED|E: ' "$log" | tail -n 8 >&2 || true
  tail -n 12 "$log" >&2
  [ -z "${HINT:-}" ] || printf 'setup: hint: %s\n' "$HINT" >&2
  exit 1
}

# cmake_build NAME SOURCE PREFIX TARGET OPTION... : configure and build; leaves the build tree in $WORK/NAME.
cmake_build() {
  local name=$1 source=$2 prefix=$3 target=$4
  shift 4
  rm -rf "${WORK:?}/$name"
  run_logged "$name-configure" "$CMAKE" -S "$source" -B "$WORK/$name" -G Ninja \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_PROJECT_INCLUDE=$HERE/setup.d/precompile.cmake" "$@"
  run_logged "$name" "$CMAKE" --build "$WORK/$name" --target "$target" -j "$(jobs)"
}
