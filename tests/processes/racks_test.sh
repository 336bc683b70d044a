#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs whose hosts are in racks, by CCOM_HOST_RACK: Bine's programs and the chosen ones move the right bytes, each proved
# before it runs; ranks of one host that name different racks, and words that name none, are errors that say so.
#   racks_test.sh PATH_OF_CCOM_BENCH
set -u
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# run NAME HOSTS RACKS [VARIABLE=VALUE...]: a rank for each digit of HOSTS, in the rack that the word of its place in
# RACKS says.
run() {
  local name=$1 hosts=$2 racks=($3) pids=() failed=0
  shift 3
  for ((rank = 0; rank < ${#hosts}; ++rank)); do
    env "$@" CCOM_VERIFY=1 CCOM_RANK=$rank CCOM_NRANKS=${#hosts} CCOM_URL="file://$folder/$name" CCOM_TRANSPORT=shm,tcp \
      CCOM_HOSTID="host${hosts:rank:1}" CCOM_HOST_RACK="${racks[rank]}" timeout 100 "$bench" all -d float32 \
      --sizes 8,4K,300K -n 1 -w 0 --check every --timeout 90 --no-progress >"$folder/$name.$rank" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return $failed
}

status=0
works() {
  if run "$@" && grep -q 'wrong values: 0 OK' "$folder/$1.0"; then
    echo "ok: $1"
  else
    echo "FAILED: $1"
    tail -n 5 "$folder/$1".*
    status=1
  fi
}
# fails TEXT NAME ...: with TEXT in what a rank writes.
fails() {
  local text=$1
  shift
  if run "$@" || ! grep -qh -- "$text" "$folder/$1".*; then
    echo "FAILED: $1 did not end with: $text"
    tail -n 5 "$folder/$1".*
    status=1
  else
    echo "ok: $1"
  fi
}

eight="a/4 a/4 a/4 b/4 b/4 b/4 c/4 c/4"
works bine 01234567 "$eight" CCOM_ALGO=bine
works bine_latency 01234567 "$eight" CCOM_ALGO=bine_latency,broadcast:tree
works chosen 00112233 "a/8 a/8 b/8 b/8 a/8 a/8 b/8 b/8"
fails 'rank 0 says that it is in rack "a", rank 1 in "b"' torn 0011 "a b c c"
fails 'CCOM_HOST_RACK=a/x: the taper behind the / is not from 1 to 1000' no_number 01 "a/x a/x"
exit $status
