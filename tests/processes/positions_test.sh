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
. "$(dirname "$0")/hosts.sh"
status=0

# works NAME HOSTS COLLECTIVES [VARIABLE=VALUE...]
works() {
  local name=$1 hosts=$2 collectives failed=0
  read -ra collectives <<<"$3"
  shift 3
  # shellcheck disable=SC2163
  (export CCOM_TRANSPORT=shm,tcp "$@" && run_hosts "$name" "$hosts" "${collectives[@]}" -d float32 --sizes 96,4K,300K \
    --timeout 90) || failed=1
  report "$name" $failed || status=1
}

works halves 01234567 "allgather reduce_scatter" CCOM_ALGO=bine
works torus 00000000 "alltoall" CCOM_TOPOLOGY=torus:2x4 CCOM_ALGO=by_dimension
works hosts_of_rings 000011112222 "alltoall" CCOM_TOPOLOGY=ring:4 CCOM_ALGO=by_dimension
works columns 000011112222 "broadcast reduce gather scatter" CCOM_TOPOLOGY=ring:4 CCOM_ALGO=columns
works chosen 0000000011111111 "allgather reduce_scatter gather scatter alltoall" CCOM_TOPOLOGY=torus:2x4
exit $status
