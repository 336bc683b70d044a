#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# CCOM_PLAN: the example runs with right results; the same without a step is refused before a byte of it moves, and the
# error names the missing contribution; other contents on one rank, no file and no JSON are errors on all ranks.
#   plan_file_test.sh PATH_OF_CCOM_BENCH PATH_OF_EXAMPLE
set -u
bench=$1 example=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

fail() {
  echo "FAILED: $1"
  tail -n 6 "$folder"/out* 2>/dev/null
  status=1
}
# run PLAN...: one plan file for each of four ranks; their output in out.RANK, their exit codes in $failed.
run() {
  local pids=() rank=0
  failed=0
  rm -f "$folder"/out* "$folder/url"
  for plan in "$@"; do
    CCOM_PLAN=$plan CCOM_RANK=$rank CCOM_NRANKS=$# CCOM_URL="file://$folder/url" CCOM_INIT_TIMEOUT_MS=20000 timeout 60 \
      "$bench" allreduce \
      --sizes 4,4K,300K -n 1 -w 0 --check every --no-progress >"$folder/out.$rank" 2>&1 &
    pids+=($!)
    rank=$((rank + 1))
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=$((failed + 1)); done
}
says() { grep -l "$1" "$folder"/out.* | wc -l; }

run "$example" "$example" "$example" "$example"
[ $failed = 0 ] && grep -q my_doubling "$folder/out.0" || fail "the example does not run"

# Rank 3's second exchange is dropped, and rank 1's half of it.
sed -e 's/"send tmp\[0\] -> rank 3",//' \
  -e 's/"recv-reduce out\[0\] = tmp\[0\] + rank 1, complete"/"copy out[0] = tmp[0], complete"/' "$example" \
  >"$folder/dropped.json"
cmp -s "$example" "$folder/dropped.json" && fail "the example has no such step any more"
run "$folder/dropped.json" "$folder/dropped.json" "$folder/dropped.json" "$folder/dropped.json"
[ $failed = 4 ] && [ "$(says 'lacks the contributions of ranks')" = 4 ] ||
  fail "a plan without a step is not refused with the missing contribution"

sed 's/my_doubling/other/' "$example" >"$folder/other.json"
run "$example" "$example" "$folder/other.json" "$example"
[ $failed = 4 ] && [ "$(says 'rank 2 has other contents in its plan file')" = 4 ] ||
  fail "other contents are not refused"

run "$folder/none.json" "$folder/none.json" "$folder/none.json" "$folder/none.json"
[ $failed = 4 ] && [ "$(says 'none.json cannot be read')" = 4 ] || fail "a missing file is not refused"

echo '{"version": 1, "plans": 3}' >"$folder/bad.json"
run "$folder/bad.json" "$folder/bad.json" "$folder/bad.json" "$folder/bad.json"
[ $failed = 4 ] && [ "$(says 'bad.json.*plans')" = 4 ] ||
  fail "a malformed file is not refused with its name and the field"

[ $status = 0 ] && echo "ok"
exit $status
