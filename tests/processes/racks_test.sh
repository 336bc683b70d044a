#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs whose hosts are in racks, by CCOM_HOST_RACK: Bine's programs and the chosen ones move the right bytes, each
# proved before it runs; ranks of one host that name different racks, and words that name none, are errors that say so.
#   racks_test.sh PATH_OF_CCOM_BENCH
set -u
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$(dirname "$0")/hosts.sh"

# run NAME HOSTS RACKS [VARIABLE=VALUE...]: each rank in the rack that the word of its place in RACKS says.
run() {
  local name=$1 hosts=$2 racks
  read -ra racks <<<"$3"
  shift 3
  of_rank() { echo "CCOM_HOST_RACK=${racks[$1]}"; }
  # shellcheck disable=SC2163
  (export CCOM_TRANSPORT=shm,tcp "$@" && run_hosts "$name" "$hosts" all -d float32 --sizes 8,4K,300K --timeout 90)
}

status=0
works() {
  local failed=0
  run "$@" || failed=1
  report "$1" $failed || status=1
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
