# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in a Debian of their own, which debootstrap has just made; to be sourced by bash. It is the release $debian,
# 12 or 13; with architecture=arm64 it is one of arm64, and qemu runs its programs.
#   in_own_namespaces "$@" starts the test again, with mounts and processes that end with it; CCOM_* variables are unset
#   make_tree PACKAGES...  $tree, with these packages, /proc, /sys and /dev, and what this machine needs to reach
#                          package hosts
#   remove_tree            which the end of the test does too
#   clone FOLDER           the tree gets a git clone of FOLDER, with its tracked files as they are, at the same path
#   share FOLDER PATH      the machine's FOLDER is the tree's PATH
#   share_ccache           what the machine's ccache has kept; to use it the tree needs ccache
#   share_pip              the machine's packages for pip, where its settings name folders
#   inside WORDS...        runs a command in the tree as root, in an environment of its own
#   step WORDS...          any command; what it prints is shown only if it fails; how long it took
debian=12
architecture=

in_own_namespaces() {
  if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "skipped: needs root and debootstrap"
    exit 77
  fi
  if [ -z "${CCOM_OWN_MOUNTS:-}" ]; then
    export CCOM_OWN_MOUNTS=1
    [ -z "$architecture" ] || in_emulator bash "$(realpath "$0")" "$@"
    exec unshare --mount --pid --fork --kill-child --mount-proc bash "$(realpath "$0")" "$@"
  fi
  local variable
  for variable in $(env | sed -n 's/^\(CCOM_[A-Z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
}

# Also in a user namespace, which asks the kernel for the emulator (tests/emulator/with_qemu.sh). It has the machine's
# ids, which dpkg needs; only this process may give it those. In the tree there is no library for the emulator: it is
# the static one.
in_emulator() {
  local folder child status=0 tries=100
  folder=$(mktemp -d)
  (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root qemu-user-static &&
    dpkg-deb -x qemu-user-static_*.deb .)
  mkfifo "$folder/ids"
  QEMU=$folder/usr/bin/qemu-aarch64-static unshare --user --mount --pid --fork --kill-child --mount-proc \
    sh -c 'read -r _ <"$0" && exec sh -e "$@"' "$folder/ids" "$(dirname "${BASH_SOURCE[0]}")/../emulator/with_qemu.sh" \
    "$@" &
  child=$!
  until echo 0 0 65536 2>/dev/null >/proc/$child/uid_map; do
    [ $((tries--)) -gt 0 ] || { kill $child; exit 1; }
    sleep 0.1
  done
  echo 0 0 65536 >/proc/$child/gid_map
  echo >"$folder/ids"
  wait $child || status=$?
  rm -rf "$folder"
  exit $status
}

step() {
  local start=$SECONDS log
  log=$(mktemp)
  "$@" >"$log" 2>&1 || { tail -n 100 "$log"; rm -f "$log"; echo "failed: $*"; exit 1; }
  rm -f "$log"
  echo "$((SECONDS - start)) s: $*" | cut -c -120
}

inside() {
  chroot "$tree" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    HOME=/root \
    DEBIAN_FRONTEND=noninteractive CCOM_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo "${tree_environment[@]}" "$@"
}

tree_mounts=()
share() {
  mkdir -p "$1" "$tree$2"
  mount --bind "$1" "$tree$2"
  tree_mounts+=("$tree$2")
}

# Paths are part of what ccache knows a file by.
clone() {
  git clone --quiet "$1" "$tree$1"
  git -C "$1" ls-files -z | while IFS= read -r -d '' file; do [ ! -e "$1/$file" ] || printf '%s\0' "$file"; done |
    tar -c -C "$1" --null -T - | tar -x -C "$tree$1"
}
share_ccache() {
  share "${CCACHE_DIR:-$(ccache --get-config cache_dir 2>/dev/null || echo ~/.cache/ccache)}" /root/.cache/ccache
}

remove_tree() {
  local mounted
  for mounted in "${tree_mounts[@]}"; do umount --lazy "$mounted" || return; done
  tree_mounts=()
  rm -rf --one-file-system "$tree"
}

# Who uses a tree holds a lock on it. Trees of tests that were killed are removed.
lock_new_tree() {
  local left new
  for left in "${TMPDIR:-/tmp}"/ccom-debian-*/; do
    [ ! -d "$left" ] || flock --nonblock "$left" rm -rf --one-file-system "$left" || true
  done
  new=$(mktemp -d -t ccom-new-debian-XXXXXX)
  exec {tree_lock}<"$new"
  flock "$tree_lock"
  tree=${new/ccom-new-/ccom-}
  mv "$new" "$tree"
}

make_tree() {
  local mirror mounted packages name machine
  local of_debian='$(ORIGIN) $(CODENAME) deb $(REPO_URI) $(CODENAME) $(COMPONENT)'
  case $debian in 12) name=bookworm ;; 13) name=trixie ;; *) echo "no Debian $debian is known here"; exit 1 ;; esac
  machine=$(. /etc/os-release && echo "${VERSION_CODENAME:-$name}")
  lock_new_tree
  trap remove_tree EXIT
  packages=$(IFS=,; echo "$*")
  mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' |
    awk -v name="$machine" '$1 == name && !found++ { print $2 }')
  packages=ca-certificates${packages:+,$packages}
  if [ -z "$architecture" ]; then
    step debootstrap --variant=minbase --include="$packages" $name "$tree" ${mirror:+"$mirror"}
  else  # debootstrap makes devices, which no user namespace may
    step mmdebstrap --mode=root --architectures="$architecture" --variant=minbase --skip=check/qemu \
      --include="$packages" $name "$tree" ${mirror:+"$mirror"}
  fi
  for mounted in proc sys dev; do
    mount --rbind --make-rslave "/$mounted" "$tree/$mounted"
    tree_mounts+=("$tree/$mounted")
  done
  cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
  echo "127.0.0.1 localhost $(hostname)" >"$tree/etc/hosts"

  # Updates from where this machine has its own, proxies, certificates, and pip's settings.
  mapfile -t tree_environment < <(env | grep -E '^(PIP_|https?_proxy=|no_proxy=)')
  apt-get indextargets --format "$of_debian" | sed -n "s/^Debian ${machine}[^ ]* //p" |
    sed "s/ $machine/ $name/" | sort -u >"$tree/etc/apt/sources.list"
  apt-config dump | grep -iE '^Acquire::https?::.*proxy' >"$tree/etc/apt/apt.conf.d/90proxy" || true
  if cp /usr/local/share/ca-certificates/*.crt "$tree/usr/local/share/ca-certificates" 2>/dev/null; then
    step inside update-ca-certificates
  fi
  [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$tree/etc"
  [ ! -e ~/.config/pip/pip.conf ] ||
    { mkdir -p "$tree/root/.config/pip"; cp ~/.config/pip/pip.conf "$tree/root/.config/pip"; }
}

# An index or packages that pip's settings name may be folders; an index has its files beside its folder `simple`.
share_pip() {
  local folder
  for folder in $({ env | grep ^PIP_; cat /etc/pip.conf ~/.config/pip/pip.conf; } 2>/dev/null |
    grep -oE '(file://|[= ])/[^ ]+' | sed -E 's,^(file://|[= ]),,; s,/simple/?$,,' | sort -u); do
    [ ! -d "$folder" ] || share "$folder" "$folder"
  done
}
