#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# replay_test.sh CCOM_BENCH CCOM_SIM CCOM_TRACE: calls are recorded, then replayed on the machine that was recorded. The whole is
# predicted within a wide bound, because other programs may run beside this; how far the model is right stands in docs/observing.md.
# Then what ccom-trace and ccom-sim say of wrong arguments.
set -euo pipefail
bench=$1 sim=$2 trace=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "replay_test: $*" >&2
  exit 1
}
field() { # NAME FILE
  sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$2"
}

CCOM_RECORD=$folder "$bench" allreduce allgather -np 2 --sizes 8,64K,1M,16M -n 30 --place out --no-progress >"$folder/bench"
"$sim" replay "$folder" --json >"$folder/replay" || fail "ccom-sim replay failed"
recorded=$(field recorded_s "$folder/replay") predicted=$(field predicted_s "$folder/replay")
echo "recorded $recorded s, predicted $predicted s, median of calls $(field median_ratio "$folder/replay")"
awk -v r="$recorded" -v p="$predicted" 'BEGIN { exit !(p > r / 50 && p < r * 5) }' || fail "recorded $recorded s, predicted $predicted s"

"$sim" replay "$folder" --links-speed 2 --bucket 4M --algo ring --json >"$folder/other"
[[ $(field calls "$folder/other" | head -1) -gt 0 ]] || fail "no calls with other buckets"
"$sim" replay "$folder" --on '4*host:2' | grep -q 'calls of 8 ranks on 4\*host:2' || fail "another machine"

"$trace" "$folder" -n 2 | grep -q 'stragglers of measured\|measured: 2 ranks' || fail "ccom-trace does not show the communicator"
for wrong in "$trace $folder/none" "$sim replay $folder/none" "$trace $folder --job 2" "$sim replay $folder --on host:2 --ranks 3"; do
  code=0
  $wrong >"$folder/out" 2>"$folder/errors" || code=$?
  [[ $code == 3 && -s $folder/errors ]] || fail "$wrong: ends with $code: $(cat "$folder/errors")"
done
