#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bare_tree_test.sh SOURCE [arm64]: the wheel in a Debian 12 that has python3-venv and no compiler, -dev package or
# library of ccom's. Runs ccom-bench over shared memory, tcp and ofi (with the wheel's libfabric), and the example of
# docs/installing.md; prints seconds and megabytes. Of torch's minors the oldest; CCOM_TEST_LONG=1 compiles for all.
# With arm64, that of scripts/build-wheel --arm64 in an emulated Debian. Needs root and debootstrap.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
. "$here/../install/debian_tree.sh"
architecture=${2:-}
cd "$1"
if [ -n "$architecture" ]; then
  command -v aarch64-linux-gnu-g++ >/dev/null ||
    { echo "skipped: needs scripts/install-dependencies --arm64"; exit 77; }
fi
if [ -z "${CCOM_OWN_MOUNTS:-}" ]; then  # the wheel is not to be made in the emulator's namespaces
  [ -n "${CCOM_TEST_LONG:-}" ] || export TORCHES=${TORCHES:-2.13}
  wheel=$(scripts/build-wheel ${architecture:+--$architecture} | tail -n 1)
  export wheel
fi
in_own_namespaces "$@"
make_tree python3-venv
share_pip
mkdir -p "$tree/packages" "$tree/examples" "$tree/contents"
bash "$here/contents.sh" "$PWD" "$wheel" "$tree/contents"
rm -r "$tree/contents"
cp "$wheel" "$tree/packages"
cp -r examples/torch_*.py examples/data "$tree/examples"
ranks=4
seconds=400
alone=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
if [ -z "$architecture" ]; then
  inside python3 -m venv /fetch
  inside /fetch/bin/pip download --quiet --dest /packages "torch==2.13.*"
else
  # docs/arm64.md. This machine's pip unpacks torch in two minutes. torch ends by SIGSEGV where /proc/cpuinfo is not of
  # its processor.
  ranks=2
  alone=()  # in a network namespace emulated gRPC answers nobody
  seconds=3600
  aarch64-linux-gnu-gcc -O2 -shared -fPIC -o "$tree/emulator.so" "$here/../emulator/robust_list.c"
  tree_environment+=(QEMU_CPU=max CCOM_ARENA_BYTES=$((1 << 30)) LD_PRELOAD=/emulator.so)
  for number in 0 1; do
    printf '%s\t: %s\n' processor $number Features 'fp asimd crc32 atomics asimdhp' 'CPU implementer' 0x41 \
      'CPU architecture' 8 'CPU part' 0xd0c 'CPU revision' 1
    echo
  done >"$tree/cpuinfo"
  mount --bind "$tree/cpuinfo" "$tree/proc/cpuinfo"
  tree_mounts=("$tree/proc/cpuinfo" "${tree_mounts[@]}")
  mapfile -t platforms < <(printf -- '--platform=manylinux_2_%d_aarch64\n' {17..36})
  step "${wheel%/dist/*}"/python-*/bin/pip install --quiet --no-compile --target "$tree/torch" --only-binary=:all: \
    "${platforms[@]}" --platform=manylinux2014_aarch64 "torch==2.13.*"
fi
cat >"$tree/try" <<'P'
set -eu
export PIP_FIND_LINKS= OMP_NUM_THREADS=1
! command -v cc gcc c++ g++ clang ld || exit 1
[ "$(find / -xdev -path /torch -prune -o \( -name 'libgrpc*' -o -name 'libabsl*' -o -name 'libfabric*' \
  -o -name 'libatomic*' -o -name '*-dev.list' \) -print | wc -l)" = 0 ]
took() { echo "$1: $(($(date +%s) - begin)) s, $(du -sm /venv | cut -f1) MB"; }
begin=$(date +%s)
python3 -m venv /venv
took "environment"
begin=$(date +%s)
/venv/bin/pip install --quiet --no-index --find-links /packages ccom
took "with ccom"
/venv/bin/ccom-bench allreduce -np 4 --sizes 8,64K,1M --check every
/venv/bin/ccom-bench allreduce -np 2 --sizes 64K --transport tcp --hostid-split 2 --check every
/venv/bin/ccom-bench allreduce -np 2 --sizes 64K --transport ofi --hostid-split 2 --check every
/venv/bin/ccom-doctor --no-speed
for program in ccom-bench ccom-doctor ccom-run ccom-sim ccom-status ccom-top ccom-topo ccom-trace; do
  /venv/bin/$program --version
done
begin=$(date +%s)
[ ! -e /torch ] || echo "import sys; sys.path.insert(0, '/torch')" >/venv/lib/python3.11/site-packages/torch.pth
/venv/bin/pip install --quiet --no-index --find-links /packages 'ccom[torch]'
took "with torch"
begin=$(date +%s)
cd /
. /venv/bin/activate
python3 -m torch.distributed.run --nproc-per-node=$1 examples/torch_ddp_digits.py
took "the example"
P
# On amd64 without a network but loopback.
timeout $seconds "${alone[@]}" bash -c "$(declare -p tree tree_environment; declare -f inside)
  inside bash /try $ranks" >"$tree/log" 2>&1 || { tail -n 60 "$tree/log"; echo "failed"; exit 1; }
cat "$tree/log"
[ "$(grep -c '^ *allreduce *65536 .*| *0 |' "$tree/log")" = 6 ] ||
  { echo "failed: a benchmark measured nothing"; exit 1; }
grep -q "$ranks ranks, ccom: .* test accuracy 0.9" "$tree/log" || { echo "failed: the example"; exit 1; }
echo "bare tree test passed"
