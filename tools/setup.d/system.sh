# Debian packages: those of the machine's own release, and a few of the next one through a private list.
# shellcheck shell=bash

missing_packages() {
  local p
  for p in "${SYSTEM_PACKAGES[@]}"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || printf '%s ' "$p"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

check_machine() {
  command -v apt-get >/dev/null || die "this script needs apt (Debian 12); elsewhere see docs for the list of dependencies"
  [ "$(dpkg --print-architecture)" = amd64 ] || die "prebuilt pins are for x86-64; this machine is $(dpkg --print-architecture)"
  # shellcheck source=/dev/null
  CODENAME=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-unknown}")
  [ "$CODENAME" = bookworm ] || warn "tried on Debian 12 (bookworm) only; this is $CODENAME"
}

install_system_packages() {
  local missing
  missing=$(missing_packages)
  [ -n "$missing" ] || { ready; return; }
  say "      installing: $missing"
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
    die "not root and no sudo; have an administrator run: apt-get install --no-install-recommends $missing"
  export DEBIAN_FRONTEND=noninteractive
  HINT="this needs the Debian mirror that /etc/apt names" run_logged apt-update as_root apt-get update -q
  # shellcheck disable=SC2086 # a list of package names
  run_logged apt-install as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $missing
  missing=$(missing_packages)
  [ -z "$missing" ] || die "apt finished, yet these are missing: $missing"
}

# The address of the Debian mirror that this machine already uses: from *.sources (deb822) or *.list files.
debian_mirror() {
  local files=()
  shopt -s nullglob
  files=(/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources)
  shopt -u nullglob
  local f
  for f in "${files[@]}"; do
    [ -r "$f" ] || continue
    awk -v suite="$CODENAME" -v deb822="$([[ $f = *.sources ]] && echo 1 || echo 0)" '
      function flush() { if (hit && uri != "") { print uri; done = 1; exit } uri = ""; hit = 0 }
      deb822 && /^[[:space:]]*$/   { flush(); next }
      deb822 && /^URIs:/           { uri = $2; next }
      deb822 && /^Suites:/         { for (i = 2; i <= NF; i++) if ($i == suite) hit = 1; next }
      !deb822 && /^deb[[:space:]]/ { sub(/\[[^]]*\]/, ""); if ($3 == suite) { print $2; done = 1; exit } }
      END { if (deb822 && !done && hit) print uri }' "$f"
  done | head -n 1
}

# A list directory of our own, so that the system's sources stay as they are.
private_apt()     { with_private_lists apt-get -q -o Acquire::Retries=3 "$@"; }
apt_show_source() { with_private_lists apt-cache showsrc "$1"; }

with_private_lists() {
  local dir="$SETUP_CACHE/apt" tool=$1
  shift
  "$tool" -o Dir::Etc::sourcelist="$dir/private.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root "$@"
}

prepare_private_apt() {
  [ -z "${PRIVATE_APT_READY:-}" ] || return 0
  local dir="$SETUP_CACHE/apt" mirror signed="" key=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "no Debian mirror for $CODENAME found in /etc/apt/sources.list or /etc/apt/sources.list.d"
  [ ! -r "$key" ] || signed="[signed-by=$key] "
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  {
    printf 'deb %s%s trixie main\n' "$signed" "$mirror"
    printf 'deb-src %s%s trixie main\n' "$signed" "$mirror"
    printf 'deb-src %s%s bookworm main\n' "$signed" "$mirror"
  } > "$dir/private.list"
  HINT="this needs the Debian mirror $mirror (suites trixie and bookworm, with sources)" \
    run_logged apt-private-update private_apt update -o APT::Update::Error-Mode=any
  PRIVATE_APT_READY=1
}

# The pinned Debian revision, or, once a Debian point release has replaced it, the one of the same upstream version.
available_version() {
  local package=$1 pinned=$2 versions
  versions=$(apt_show_source "$package" | awk '$1 == "Version:" {print $2}')
  grep -qxF "$pinned" <<< "$versions" && { printf '%s' "$pinned"; return; }
  grep -F "${pinned%-*}-" <<< "$versions" | head -n 1 || true
}

# debian_source PACKAGE VERSION ORIG SHA256 : fetch a source package (apt checks Debian's signatures; we pin upstream's tarball).
debian_source() {
  local package=$1 pinned=$2 orig=$3 sha=$4 folder="$DOWNLOADS/${1}_$2" version
  is_done "$folder" && return
  rm -rf "$folder"
  mkdir -p "$folder"
  prepare_private_apt
  version=$(available_version "$package" "$pinned")
  [ -n "$version" ] || die "the Debian mirror has no source package $package $pinned"
  [ "$version" = "$pinned" ] || warn "$package $pinned is gone from the mirror; taking $version (same upstream)"
  ( cd "$folder" && run_logged "$package-download" private_apt source --download-only "$package=$version" )
  verify_sha256 "$folder/$orig" "$sha"
  mark_done "$folder"
}

# unpack_debian_source PACKAGE VERSION DIR : upstream plus Debian's patches.
unpack_debian_source() {
  rm -rf "$3"
  mkdir -p "$(dirname "$3")"
  run_logged "$1-unpack" dpkg-source --no-check -x "$DOWNLOADS/${1}_$2/"*.dsc "$3"
}
