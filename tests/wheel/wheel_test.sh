#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wheel_test.sh SOURCE BUILD: makes the wheel and uses it as those do who have installed it.
#   what it asks of a host   contents.sh
#   without torch            a new environment: the package is imported, the programs run, those that cmake --install
#                            installs
#   with torch               beside grpcio and protobuf of the index, which come first or second; the example of the
#                            README
# Of torch's minors the oldest is tried, whose package for processors is small; CCOM_TEST_LONG=1 compiles for all.
set -euo pipefail
source=$1
build=$2
cd "$source"
for variable in $(env | sed -n 's/^\(CCOM_[A-Z0-9_]*\)=.*/\1/p'); do
  case $variable in CCOM_TEST_LONG) ;; *) unset "$variable" ;; esac
done
export CCOM_SOCKET_IFNAME=lo
[ -n "${CCOM_TEST_LONG:-}" ] || export TORCHES=${TORCHES:-2.13}

wheel=$(scripts/build-wheel | tail -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "failed: $*"
  exit 1
}

made=$(bash tests/wheel/contents.sh "$source" "$wheel" "$folder") || fail "$made"
cmake --install "$build" --prefix "$folder/installed" >/dev/null
[ "$(ls "$folder/installed/bin")" = "$(ls "$folder/unpacked/ccom/bin")" ] ||
  { ls "$folder/unpacked/ccom/bin"; fail "its programs"; }

# Without torch.
/usr/bin/python3 -m venv "$folder/plain"
"$folder/plain/bin/pip" install --quiet --no-index "$wheel"
cd "$folder"
plain/bin/python -c 'import ccom; expected = tuple(int(part) for part in ccom.__version__.split("."))
assert ccom.version() == expected, ccom.version()'
plain/bin/python -c 'import ccom.torch' 2>log && fail "ccom.torch without torch is imported"
grep -q "ccom.torch needs PyTorch, which is not installed here" log || { cat log; fail "ccom.torch without torch"; }
for program in installed/bin/*; do
  program=${program##*/}
  "plain/bin/$program" --version | grep -q "^$program [0-9]" || fail "$program --version"
done
cat >buffers.py <<'P'
import ccom
with ccom.init() as world:
    buffer = bytearray([world.rank + 1] * 3)
    world.all_reduce(buffer, inplace=True)
    print(list(buffer))
P
[ "$(plain/bin/ccom-run -n 3 buffers.py 2>&1)" = "$(printf '[6, 6, 6]\n%.0s' 1 2 3)" ] || fail "ccom.init without numpy"
plain/bin/ccom-bench allreduce -np 4 --sizes 8,64K >log || { cat log; fail "ccom-bench"; }
grep -q 65536 log || { cat log; fail "ccom-bench measured nothing"; }
plain/bin/ccom-bench allreduce -np 2 --sizes 64K --transport ofi >log 2>&1 || { cat log; fail "ccom-bench on ofi"; }

# With torch, grpcio and protobuf.
/usr/bin/python3 -m venv "$folder/torch"
torch/bin/pip install --quiet "torch==2.13.*" numpy grpcio protobuf
torch/bin/pip install --quiet --no-index --no-deps "$wheel"
torch/bin/pip check || fail "pip check"
for order in before after; do
  timeout 120 torch/bin/python -m torch.distributed.run --nproc-per-node=2 "$source/tests/wheel/beside.py" $order \
    >log 2>&1 ||
    { cat log; fail "beside grpcio and protobuf, these $order"; }
  [ "$(grep -c "$order fine" log)" = 2 ] || { cat log; fail "beside grpcio and protobuf, these $order"; }
done
OMP_NUM_THREADS=1 timeout 200 torch/bin/python -m torch.distributed.run --nproc-per-node=4 \
  "$source/examples/torch_ddp_digits.py" >log 2>&1 ||
  { cat log; fail "the example"; }
tail -n 3 log

echo "wheel test passed: $made"
