#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The whole path between two hosts of two ranks each (network namespaces, two links): over IPv6 alone; and inside TLS,
# over both links at once, within a range of ports. Links that die: rails_test.py. Exit 77 (skipped) without the
# privilege.
#   tcp_hosts_test.sh CCOM_BENCH
set -eu
bench=$1
name=ccomt$$
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
if ! ip netns exec "$name-a" true 2>"$folder/why"; then # e.g. in a chroot, whose root is no mount point
  echo "skipped: programs cannot be run in network namespaces here: $(cat "$folder/why")"
  exit 77
fi
ip netns add "$name-b"
for link in 0 1; do
  ip link add "l$link" netns "$name-a" type veth peer name "l$link" netns "$name-b"
done
number=1
for host in a b; do
  ip -n "$name-$host" link set lo up
  for link in 0 1; do
    ip -n "$name-$host" link set "l$link" up
    ip -n "$name-$host" addr add "fd00:77:$link::$number/64" dev "l$link" nodad
  done
  number=2
done

unset CCOM_SOCKET_IFNAME CCOM_TRANSPORT
export CCOM_NRANKS=4 CCOM_SECRET=a-secret-of-this-test CCOM_INIT_TIMEOUT_MS=60000 CCOM_TIMEOUT_MS=60000

# on_both URL COMMAND...: ranks 0 and 1 on host a, 2 and 3 on host b; what rank n says to $folder/n, how it ended to
# $folder/n.code
on_both() {
  rm -f "$folder"/?
  export CCOM_URL="$1"
  shift
  for host in a b; do
    first=0
    test $host = a || first=2
    # One exec per host: each makes a mount namespace of its own, which would make every rank a host.
    timeout 100 ip netns exec "$name-$host" sh -c 'folder=$0; first=$1; shift
      for rank in $first $((first + 1)); do
        { CCOM_RANK=$rank "$@" >"$folder/$rank" 2>&1 && echo 0 >"$folder/$rank.code" ||
          echo $? >"$folder/$rank.code"; } &
      done; wait' "$folder" $first "$@" &
  done
}
all_good() {
  wait
  for rank in 0 1 2 3; do
    test "$(cat "$folder/$rank.code")" = 0 || { echo "$1: rank $rank failed"; cat "$folder/$rank"; exit 1; }
  done
  grep -q '2 hosts' "$folder/0" && grep -q 'wrong values: 0' "$folder/0" || { cat "$folder/0"; exit 1; }
  echo "$1: fine"
}

on_both "tcp://[fd00:77:0::1]:24001" "$bench" allreduce,alltoall --sizes 8,1M -n 3 -w 1 --timeout 60
all_good "IPv6"

for host in 1 2; do
  side=a
  test $host = 1 || side=b
  for link in 0 1; do ip -n "$name-$side" addr add "10.78.$link.$host/24" dev "l$link"; done
done
export CCOM_SOCKET_IFNAME=l0,l1 CCOM_TLS=1 CCOM_PORT_RANGE=24100-24120
on_both "tcp://10.78.0.1:24002" "$bench" allreduce,alltoall --sizes 8,1M -n 3 -w 1 --timeout 60
all_good "TLS over two links within a range of ports"
