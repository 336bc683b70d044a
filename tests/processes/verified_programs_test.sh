#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every collective on hosts of many forms, each program proved before it runs (CCOM_VERIFY=1), every byte checked.
#   verified_programs_test.sh PATH_OF_CCOM_BENCH
# A case is "HOSTS TRANSPORTS": the host of each rank, one digit a rank. All cases with CCOM_TEST_LONG=1; otherwise three,
# another three each day.
set -u
bench=$1
cases=(
  "0 shm,tcp" "00 shm,tcp" "000 shm,tcp" "00000 shm,tcp" "00000000 shm,tcp"
  "0011 shm,tcp" "00011 shm,tcp" "00001111 shm,tcp" "012 shm,tcp" "001122 shm,tcp" "00111222 shm,tcp"
  "00011111 shm,tcp" "01111 shm,tcp" "01010101 shm,tcp" "10011010 shm,tcp" "110100 shm,tcp" "001122202 shm,tcp"
  "0011 shm,ofi" "00011111 shm,ofi" "01111 shm,ofi" "10011010 shm,ofi"
)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run_case() {
  local hosts=$1 transports=$2 number=$3 pids=() failed=0
  for ((rank = 0; rank < ${#hosts}; ++rank)); do
    CCOM_VERIFY=1 CCOM_RANK=$rank CCOM_NRANKS=${#hosts} CCOM_URL="file://$folder/$number" CCOM_HOSTID="host${hosts:rank:1}" \
      CCOM_TRANSPORT=$transports timeout 200 "$bench" all -d float32,bfloat16 --sizes 0,8,4K,300K -n 1 -w 0 --check every \
      --timeout 150 --no-progress >"$folder/$number.$rank" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  if [ $failed = 0 ] && grep -q 'wrong values: 0 OK' "$folder/$number.0"; then
    echo "ok: hosts $hosts, $transports"
  else
    echo "FAILED: hosts $hosts, $transports"
    tail -n 5 "$folder/$number".*
    return 1
  fi
}

chosen=("${!cases[@]}")
if [ "${CCOM_TEST_LONG:-0}" != 1 ]; then
  day=$(date +%j)
  chosen=($(((10#$day * 3) % ${#cases[@]})) $(((10#$day * 3 + 1) % ${#cases[@]})) $(((10#$day * 3 + 2) % ${#cases[@]})))
  echo "day $day: cases ${chosen[*]} of ${#cases[@]}; CCOM_TEST_LONG=1 runs all"
fi
status=0
for index in "${chosen[@]}"; do
  run_case ${cases[$index]} "$index" || status=1
done
exit $status
