#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bare_tree_test.sh SOURCE: the wheel in a Debian 12 that has python3-venv and no compiler, -dev package or library of ccom's. Runs
# ccom-bench over shared memory, tcp and ofi (with the wheel's libfabric), and the README's example; prints seconds and megabytes.
# Needs root and debootstrap. Only with CCOM_TEST_LONG=1.
set -euo pipefail
source=$1
[ -n "${CCOM_TEST_LONG:-}" ] || { echo "only with CCOM_TEST_LONG=1"; exit 77; }
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || { echo "needs root and debootstrap"; exit 77; }
cd "$source"
wheel=$(scripts/build-wheel | tail -n 1)
folder=$(mktemp -d)
tree=$folder/tree
trap 'rm -rf --one-file-system "$folder"' EXIT

debootstrap --variant=minbase --include=python3-venv bookworm "$tree" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
mkdir -p "$tree/packages" "$tree/examples"
cp "$wheel" "$tree/packages"
cp -r examples/torch_*.py examples/data "$tree/examples"
/usr/bin/python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" download --quiet --dest "$tree/packages" "torch==2.13.*" numpy
echo "127.0.0.1 localhost $(hostname)" >"$tree/etc/hosts"  # torchrun asks for both
cat >"$tree/try" <<'P'
set -eu
export HOME=/root PIP_FIND_LINKS= CCOM_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 PATH=/usr/bin:/bin
! command -v cc gcc c++ g++ clang ld || exit 1
[ "$(find / -xdev \( -name 'libgrpc*' -o -name 'libabsl*' -o -name 'libfabric*' -o -name 'libatomic*' -o -name '*-dev.list' \) | wc -l)" = 0 ]
took() { echo "$1: $(($(date +%s) - begin)) s, $(du -sm /venv | cut -f1) MB"; }
begin=$(date +%s)
python3 -m venv /venv
took "environment"
begin=$(date +%s)
/venv/bin/pip install --quiet --no-index --find-links /packages ccom
took "with ccom"
/venv/bin/ccom-bench allreduce -np 4 --sizes 8,64K,1M
/venv/bin/ccom-bench allreduce -np 2 --sizes 64K --transport tcp --hostid-split 2
/venv/bin/ccom-bench allreduce -np 2 --sizes 64K --transport ofi --hostid-split 2
/venv/bin/ccom-doctor --version
begin=$(date +%s)
/venv/bin/pip install --quiet --no-index --find-links /packages 'ccom[torch]' numpy
took "with torch"
begin=$(date +%s)
cd /
. /venv/bin/activate
torchrun --nproc-per-node=4 examples/torch_ddp_digits.py
took "the example"
P
# Mounts of a mount namespace of its own, which end with it. No network but loopback.
timeout 400 unshare --mount --net --pid --fork --kill-child bash -c "
  mount --make-rprivate / && ip link set lo up && mount -t proc proc '$tree/proc' && mount --rbind /sys '$tree/sys' &&
  mount --rbind /dev '$tree/dev' && exec chroot '$tree' bash /try" >"$folder/log" 2>&1 || { tail -n 60 "$folder/log"; echo "failed"; exit 1; }
cat "$folder/log"
[ "$(grep -c '^ *allreduce *65536 .*| *0 |' "$folder/log")" = 6 ] || { echo "failed: a benchmark measured nothing"; exit 1; }
grep -q '4 ranks, ccom: .* test accuracy 0.9' "$folder/log" || { echo "failed: the example"; exit 1; }
echo "bare tree test passed"
