#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bare_tree_test.sh SOURCE: the wheel in a Debian 12 that has python3-venv and no compiler, -dev package or library of ccom's. Runs
# ccom-bench over shared memory, tcp and ofi (with the wheel's libfabric), and the example of docs/installing.md; prints seconds and megabytes.
# Needs root and debootstrap. Only with CCOM_TEST_LONG=1.
set -euo pipefail
[ -n "${CCOM_TEST_LONG:-}" ] || { echo "only with CCOM_TEST_LONG=1"; exit 77; }
. "$(dirname "$0")/../install/debian_tree.sh"
in_own_namespaces "$@"
cd "$1"
wheel=$(scripts/build-wheel | tail -n 1)
make_tree python3-venv
share_pip
mkdir -p "$tree/packages" "$tree/examples"
cp "$wheel" "$tree/packages"
cp -r examples/torch_*.py examples/data "$tree/examples"
inside python3 -m venv /fetch
inside /fetch/bin/pip download --quiet --dest /packages "torch==2.13.*"
cat >"$tree/try" <<'P'
set -eu
export PIP_FIND_LINKS= OMP_NUM_THREADS=1
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
/venv/bin/pip install --quiet --no-index --find-links /packages 'ccom[torch]'
took "with torch"
begin=$(date +%s)
cd /
. /venv/bin/activate
torchrun --nproc-per-node=4 examples/torch_ddp_digits.py
took "the example"
P
# No network but loopback.
export -f inside
export tree
timeout 400 unshare --net bash -c 'ip link set lo up && inside bash /try' >"$tree/log" 2>&1 || { tail -n 60 "$tree/log"; echo "failed"; exit 1; }
cat "$tree/log"
[ "$(grep -c '^ *allreduce *65536 .*| *0 |' "$tree/log")" = 6 ] || { echo "failed: a benchmark measured nothing"; exit 1; }
grep -q '4 ranks, ccom: .* test accuracy 0.9' "$tree/log" || { echo "failed: the example"; exit 1; }
echo "bare tree test passed"
