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

. "$(dirname "$0")/hosts.sh"
seconds=200

# run_case HOSTS TRANSPORTS NUMBER
run_case() {
  local failed=0
  (export CCOM_TRANSPORT=$2 && run_hosts "$3" "$1" all -d float32,bfloat16 --sizes 0,8,4K,300K --timeout 150) || failed=1
  echo "hosts $1, $2:"
  report "$3" $failed
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
