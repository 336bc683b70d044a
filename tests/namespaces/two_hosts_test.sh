#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The training example, unchanged, on two hosts of two ranks each: network namespaces joined by a veth pair, shared
# memory inside, TCP across, allreduce hierarchical. Its loss curve is that of one rank. Exit 77 (skipped) without the
# privilege.
#   two_hosts_test.sh TRAIN_DIGITS COMPARE_CURVES CCOM_BENCH
set -eu
train=$1
compare=$2
bench=$3
name=ccom$$
folder=$(mktemp -d)

clean() {
  for pid in $(ip netns pids "$name-a" 2>/dev/null) $(ip netns pids "$name-b" 2>/dev/null); do
    kill -9 "$pid" 2>/dev/null || true
  done
  ip netns del "$name-a" 2>/dev/null || true
  ip netns del "$name-b" 2>/dev/null || true
  rm -rf "$folder"
}
if ! command -v ip >/dev/null || ! ip netns add "$name-a" 2>"$folder/why"; then
  echo "skipped: network namespaces need root and iproute2: $(cat "$folder/why" 2>/dev/null)"
  rm -rf "$folder"
  exit 77
fi
trap clean EXIT INT TERM
if ! ip netns exec "$name-a" true 2>"$folder/why"; then  # e.g. in a chroot, whose root is no mount point
  echo "skipped: programs cannot be run in network namespaces here: $(cat "$folder/why")"
  exit 77
fi
ip netns add "$name-b"
ip link add "va$$" netns "$name-a" type veth peer name "vb$$" netns "$name-b"
ip -n "$name-a" addr add 10.77.0.1/24 dev "va$$"
ip -n "$name-b" addr add 10.77.0.2/24 dev "vb$$"
for host in a b; do
  ip -n "$name-$host" link set lo up
  ip -n "$name-$host" link set "v$host$$" up
done

unset CCOM_SOCKET_IFNAME
export CCOM_NRANKS=4 CCOM_SECRET=a-secret-of-this-test CCOM_INIT_TIMEOUT_MS=60000 CCOM_TIMEOUT_MS=60000

# on_both PORT COMMAND...: ranks 0 and 1 on host a, 2 and 3 on host b; rank 0's output to $folder/out
on_both() {
  port=$1
  shift
  export CCOM_URL="tcp://10.77.0.1:$port"
  # One exec per host: each makes a mount namespace of its own, which would make every rank a host.
  timeout 120 ip netns exec "$name-a" sh -c \
    'CCOM_RANK=0 "$@" >"$0" & first=$!; CCOM_RANK=1 "$@" >/dev/null; second=$?; wait $first && exit $second' \
    "$folder/out" "$@" &
  host_a=$!
  timeout 120 ip netns exec "$name-b" sh -c \
    'CCOM_RANK=2 "$@" >/dev/null & first=$!; CCOM_RANK=3 "$@" >/dev/null; second=$?; wait $first && exit $second' x "$@"
  wait $host_a
}

on_both 24001 "$bench" allreduce --sizes 8,1M -n 3 -w 1 --timeout 100
grep -q '4 ranks' "$folder/out" && grep -q '2 hosts' "$folder/out" && grep -q 'hierarchical' "$folder/out" ||
  { cat "$folder/out"; exit 1; }

on_both 24002 "$train" --curve "$folder/two_hosts.csv"
tail -1 "$folder/out"
env -u CCOM_NRANKS -u CCOM_URL "$train" -np 1 --curve "$folder/one_rank.csv" >/dev/null
"$compare" "$folder/one_rank.csv" "$folder/two_hosts.csv" 1e-4
