#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   debian_test.sh SOURCE
# The packages of scripts/build-debs in a Debian 12 that debootstrap has just made: installed, used (C by pkg-config and by
# CMake, the tools, man pages, completions, Python), and purged; the files are the same before and after. One day in three
# (CCOM_TEST_DAY), not that of the clean clone; always with CCOM_TEST_LONG=1, or when no day is given.
set -euo pipefail
if [ -z "${CCOM_TEST_LONG:-}" ] && [ $((${CCOM_TEST_DAY:-1} % 3)) != 1 ]; then
  echo "due one day in three; CCOM_TEST_LONG=1 runs it now"
  exit 77
fi
if [ "$(id -u)" != 0 ]; then
  echo "skipped: chroot needs root"
  exit 77
fi
source=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
if [ -z "${CCOM_OWN_MOUNTS:-}" ]; then  # mounts and processes end with this script
  CCOM_OWN_MOUNTS=1 exec unshare --mount --pid --fork --kill-child --mount-proc bash "$here/debian_test.sh" "$@"
fi
for variable in $(env | sed -n 's/^\(CCOM_[A-Z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
tree=$(mktemp -d)
unmount() { umount -R "$tree/proc" "$tree/sys" "$tree/dev" 2>/dev/null || true; }
trap 'unmount; rm -rf --one-file-system "$tree"' EXIT

# step WORDS...: what it prints is shown only if it fails, and how long it took.
step() {
  local start=$SECONDS
  "$@" >"$tree.log" 2>&1 || { tail -n 100 "$tree.log"; rm -f "$tree.log"; echo "failed: $*"; exit 1; }
  rm -f "$tree.log"
  echo "$((SECONDS - start)) s: $*" | cut -c -120
}
inside() { chroot "$tree" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive \
  CCOM_SOCKET_IFNAME=lo http_proxy="${http_proxy:-}" "$@"; }
install() { inside apt-get install -y -q --no-install-recommends "$@"; }
files() { inside find / -xdev \( -path /root/packages -o -path /var/log -o -path '/var/cache/*' -o -path '/var/lib/dpkg/*-old' \) -prune -o -print | sort; }

step "$source/scripts/build-debs"
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' | awk '$1 == "bookworm" { print $2; exit }')
step debootstrap --variant=minbase bookworm "$tree" "$mirror"
apt-config dump | grep -iE '^Acquire::https?::.*proxy' >"$tree/etc/apt/apt.conf.d/90proxy" || true
cp /etc/resolv.conf "$tree/etc/resolv.conf"
for mounted in proc sys dev; do mount --rbind --make-rslave "/$mounted" "$tree/$mounted"; done
mkdir "$tree/root/packages"
cp "$source"/build/debs/*.deb "$here/installed_packages_test.sh" "$here/../install/completions_test.sh" "$tree/root/packages"
rm "$tree"/root/packages/*-dbgsym_*

step install gcc libc6-dev pkg-config cmake ninja-build python3 man-db bash-completion zsh fish
debs=$(cd "$tree" && echo root/packages/*.deb)
packages=$(for deb in $debs; do dpkg-deb --field "$tree/$deb" Package; done)
[ "$(echo $packages)" = 'ccom-tools libccom-dev libccom0 python3-ccom' ] || { echo "packages: $packages"; exit 1; }
# What they depend on stays: files are compared without it.
needed=$(install --simulate ${debs//root/\/root} | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vxF "$packages")
step install $needed
files >"$tree/root/packages/before"
step install ${debs//root/\/root}
step inside bash /root/packages/installed_packages_test.sh
step inside apt-get purge -y -q $packages
files >"$tree/root/packages/after"
diff "$tree/root/packages/before" "$tree/root/packages/after" || { echo "purged packages leave or take files"; exit 1; }
! inside dpkg --get-selections | grep -E '^(lib|python3-)?ccom' || { echo "purged packages are known still"; exit 1; }
echo "packages test passed: $(wc -l <"$tree/root/packages/before") files before and after"
