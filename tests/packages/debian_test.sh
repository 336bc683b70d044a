#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   debian_test.sh SOURCE
# The packages of scripts/build-debs in a Debian 12 that debootstrap has just made: installed, used (C by pkg-config and by
# CMake, the tools, man pages, completions, Python), and purged; the files are the same before and after. One day in three.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../install/debian_tree.sh"
due 1
in_own_namespaces "$@"
source=$(realpath "$1")
install() { inside apt-get install -y -q --no-install-recommends "$@"; }
files() { inside find / -xdev \( -path /root/packages -o -path /var/log -o -path '/var/cache/*' -o -path '/var/lib/dpkg/*-old' \) -prune -o -print | sort; }

step "$source/scripts/build-debs"
make_tree
step inside apt-get update
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
