#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What README.md says, in its order, in a clean copy of the tracked files: scripts/quickstart, at once cmake --install and all
# that install_test.sh does with it, the example, scripts/install-torch, and a torch program of two ranks. It builds everything
# again: one day in three (CCOM_TEST_DAY); always with CCOM_TEST_LONG=1, or when no day is given.
set -eu
if [ -z "${CCOM_TEST_LONG:-}" ] && [ $((${CCOM_TEST_DAY:-0} % 3)) != 0 ]; then
  echo "due one day in three; CCOM_TEST_LONG=1 runs it now"
  exit 77
fi
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$source"
git ls-files -z | xargs -0 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\0" "$file"; done' sh | tar -c --null -T - | tar -x -C "$folder"
cd "$folder"
for variable in $(env | sed -n 's/^\(CCOM_[A-Z0-9_]*\)=.*/\1/p'); do unset "$variable"; done
export CCOM_SOCKET_IFNAME=lo

# step WORDS...: a line of the README; what it prints is shown only if it fails.
step() {
  echo "$*"
  "$@" >log 2>&1 || { tail -n 100 log; echo "failed: $*"; exit 1; }
}

step scripts/quickstart --sizes 8,64K
grep -q '65536' log || { cat log; echo "quickstart measured nothing"; exit 1; }
step sh tests/install/install_test.sh build/release tests/install/consumer
step build/release/examples/train_digits -np 4 --epochs 1
step scripts/install-torch
cat >program.py <<'P'
import torch
import torch.distributed as dist

dist.init_process_group("ccom")
value = torch.full((4,), float(dist.get_rank() + 1))
dist.all_reduce(value)
assert value.tolist() == [3.0] * 4, value
dist.destroy_process_group()
P
step build/torch/bin/python -m torch.distributed.run --nproc-per-node=2 program.py
echo "clean clone test passed"
