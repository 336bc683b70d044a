# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in a Debian 12 of their own, which debootstrap has just made; to be sourced by bash.
#   due wheel              ends the test if CCOM_TEST_DAY has another turn (tests/turns.sh)
#   in_own_namespaces "$@" starts the test again, with mounts and processes that end with it; CCOM_* variables are unset
#   make_tree PACKAGES...  $tree, with these packages, /proc, /sys and /dev, and what this machine needs to reach
#                          package hosts
#   share_pip              the machine's packages for pip, where its settings name folders
#   share FOLDER PATH      the machine's FOLDER is the tree's PATH
#   inside WORDS...        runs a command in the tree as root, in an environment of its own
#   step WORDS...          any command; what it prints is shown only if it fails; how long it took
# With architecture=arm64 before them, the tree is one of arm64, and qemu runs its programs.
. "$(dirname "${BASH_SOURCE[0]}")/../turns.sh"
architecture=

due() {
  [ -z "${CCOM_TEST_LONG:-}" ] && [ -n "${CCOM_TEST_DAY:-}" ] && ! is_turn "$1" || return 0
  echo "it is not its turn today (tests/turns.sh); CCOM_TEST_LONG=1 runs it now"
  exit 77
}

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

remove_tree() {
  local mounted
  for mounted in "${tree_mounts[@]}"; do umount --lazy "$mounted" || return; done
  rm -rf --one-file-system "$tree"
}

make_tree() {
  local mirror mounted packages
  local of_debian='$(ORIGIN) $(CODENAME) deb $(REPO_URI) $(RELEASE) $(COMPONENT)'
  tree=$(mktemp -d)
  trap remove_tree EXIT
  packages=$(IFS=,; echo "$*")
  mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' | awk '$1 == "bookworm" && !found++ { print $2 }')
  packages=ca-certificates${packages:+,$packages}
  if [ -z "$architecture" ]; then
    step debootstrap --variant=minbase --include="$packages" bookworm "$tree" ${mirror:+"$mirror"}
  else  # debootstrap makes devices, which no user namespace may
    step mmdebstrap --mode=root --architectures="$architecture" --variant=minbase --skip=check/qemu \
      --include="$packages" \
      bookworm "$tree" ${mirror:+"$mirror"}
  fi
  for mounted in proc sys dev; do
    mount --rbind --make-rslave "/$mounted" "$tree/$mounted"
    tree_mounts+=("$tree/$mounted")
  done
  cp -L /etc/resolv.conf "$tree/etc/resolv.conf"
  echo "127.0.0.1 localhost $(hostname)" >"$tree/etc/hosts"

  # Updates, proxies, certificates, and pip's settings.
  mapfile -t tree_environment < <(env | grep -E '^(PIP_|https?_proxy=|no_proxy=)')
  apt-get indextargets --format "$of_debian" | sed -n 's/^Debian bookworm[^ ]* //p' |
    sort -u >"$tree/etc/apt/sources.list"
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
