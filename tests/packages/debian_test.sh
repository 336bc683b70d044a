#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   debian_test.sh SOURCE 12|13 [arm64]
# The packages of scripts/build-debs, made in a Debian 12 or 13 that has just been made, and in a second one installed,
# used (C by pkg-config and by CMake, the tools, man pages, completions, Python), and purged; the files are the same
# before and after. With arm64, those of scripts/build-debs --arm64, which have the same files as the machine's own, in
# an emulated Debian.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../install/debian_tree.sh"
source=$(realpath "$1")
debian=$2
architecture=${3:-}
made=$source/build/debs-${architecture:-$debian}
# package, kind, size of links and path of each file in packages for ARCHITECTURE, without its name in paths and without
# build ids.
contents() {
  local deb
  for deb in "${@:2}"; do
    dpkg-deb --contents "$deb" | awk -v "package=${deb##*/}" \
      '{ sub(/_.*/, "", package); print package, $1, $2, $6, $7, $8 }'
  done | sed -E "s/$1-linux-gnu/TRIPLET/g; s,/\.build-id/.*,/.build-id," | sort -u
}
if [ -n "$architecture" ] && [ -z "${CCOM_OWN_MOUNTS:-}" ]; then
  # mmdebstrap is not to be started in the emulator's namespaces.
  command -v aarch64-linux-gnu-g++ >/dev/null ||
    { echo "skipped: needs scripts/install-dependencies --arm64"; exit 77; }
  step "$source/scripts/build-debs" -b
  step "$source/scripts/build-debs" "--$architecture"
  diff <(contents x86_64 "$source"/build/debs/*.deb) <(contents aarch64 "$made"/*.deb) ||
    { echo "amd64's packages (<) have other files than arm64's (>)"; exit 1; }
fi
in_own_namespaces "$@"
install() { inside apt-get install -y -q --no-install-recommends "$@"; }
files() { inside find / -xdev \( -path /root/packages -o -path /var/log -o -path '/var/cache/*' \
  -o -path '/var/lib/dpkg/*-old' \) -prune -o -print | sort; }

if [ -z "$architecture" ]; then
  make_tree git ccache
  clone "$source"
  share_ccache
  step inside "$source/scripts/build-debs"
  rm -rf "$made"
  mv "$tree$source/build/debs" "$made"
  remove_tree
fi
# shellcheck disable=SC2119
make_tree
step inside apt-get update
mkdir "$tree/root/packages"
cp "$made"/*.deb "$here/installed_packages_test.sh" "$here/../install/completions_test.sh" "$tree/root/packages"
rm "$tree"/root/packages/*-dbgsym_*

step install gcc libc6-dev pkg-config cmake ninja-build python3 man-db bash-completion zsh fish
if [ -n "$architecture" ]; then  # docs/arm64.md
  cp "$here/../emulator/robust_list.c" "$tree/root/packages"
  inside gcc -O2 -shared -fPIC -o /root/packages/emulator.so /root/packages/robust_list.c
  tree_environment+=(QEMU_CPU=max CCOM_ARENA_BYTES=$((1 << 30)) LD_PRELOAD=/root/packages/emulator.so \
    MAN_DISABLE_SECCOMP=1)
fi
debs=("$tree"/root/packages/*.deb)
mapfile -t packages < <(for deb in "${debs[@]}"; do dpkg-deb --field "$deb" Package; done)
debs=("${debs[@]#"$tree"}")
[ "${packages[*]}" = 'ccom-mpi ccom-tools libccom-dev libccom0 python3-ccom' ] ||
  { echo "packages: ${packages[*]}"; exit 1; }
# What they depend on stays: files are compared without it.
mapfile -t needed < <(install --simulate "${debs[@]}" | sed -n 's/^Inst \([^ ]*\) .*/\1/p' |
  grep -vxF "$(printf '%s\n' "${packages[@]}")")
step install "${needed[@]}"
files >"$tree/root/packages/before"
step install "${debs[@]}"
step inside bash /root/packages/installed_packages_test.sh
step inside apt-get purge -y -q "${packages[@]}"
files >"$tree/root/packages/after"
diff "$tree/root/packages/before" "$tree/root/packages/after" || { echo "purged packages leave or take files"; exit 1; }
! inside dpkg --get-selections | grep -E '^(lib|python3-)?ccom' || { echo "purged packages are known still"; exit 1; }
echo "packages test passed: $(wc -l <"$tree/root/packages/before") files before and after"
