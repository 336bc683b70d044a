#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Plans whose data lies by position move the right bytes between processes: halves of units that are no runs of ranks,
# dimensions of a torus and of hosts of them, trees of columns; each is proved before it runs.
#   positions_test.sh PATH_OF_CCOM_BENCH
set -u
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

# works NAME HOSTS OPTIONS_OF_CCOM_BENCH [VARIABLE=VALUE...]: a rank for each digit of HOSTS.
works() {
  local name=$1 hosts=$2 options=($3) pids=() failed=0
  shift 3
  for ((rank = 0; rank < ${#hosts}; ++rank)); do
    env "$@" CCOM_VERIFY=1 CCOM_RANK=$rank CCOM_NRANKS=${#hosts} CCOM_URL="file://$folder/$name" CCOM_TRANSPORT=shm,tcp \
      CCOM_HOSTID="host${hosts:rank:1}" timeout 100 "$bench" "${options[@]}" -d float32 --sizes 96,4K,300K -n 1 -w 0 \
      --check every --timeout 90 --no-progress >"$folder/$name.$rank" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  if [ $failed = 0 ] && grep -q 'wrong values: 0 OK' "$folder/$name.0"; then
    echo "ok: $name"
  else
    echo "FAILED: $name"
    tail -n 5 "$folder/$name".*
    status=1
  fi
}

works halves 01234567 "allgather reduce_scatter" CCOM_ALGO=bine
works torus 00000000 "alltoall" CCOM_TOPOLOGY=torus:2x4 CCOM_ALGO=by_dimension
works hosts_of_rings 000011112222 "alltoall" CCOM_TOPOLOGY=ring:4 CCOM_ALGO=by_dimension
works columns 000011112222 "broadcast reduce gather scatter" CCOM_TOPOLOGY=ring:4 CCOM_ALGO=columns
works chosen 0000000011111111 "allgather reduce_scatter gather scatter alltoall" CCOM_TOPOLOGY=torus:2x4
exit $status
