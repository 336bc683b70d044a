#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ccom-doctor on three hosts that are network namespaces joined by a bridge in a fourth, with one thing broken. Each
# case says what the report must name. Exit 77 (skipped) without the privilege, or without the program that breaks it.
#   namespaces_test.sh CASE CCOM_DOCTOR
#
#   healthy       nothing: no trouble is found
#   one_way       host c drops what would begin a connection to it; its own connections work
#   unreachable   host a has no route to b; the rendezvous is on c
#   frames        between the bridge and c a link takes 1300 bytes only, and what says so is lost; the rendezvous is on
#                 another network
#   shaped        c sends at a tenth of what a and b do
#   two_networks  the data network of b is down, the rendezvous uses another one
set -eu
test_case=$1
doctor=$2
name=cd$$
folder=$(mktemp -d)

clean() {
  for host in a b c w; do
    for pid in $(ip netns pids "$name-$host" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
    ip netns del "$name-$host" 2>/dev/null || true
  done
  rm -rf "$folder"
}
skip() {
  echo "skipped: $1"
  exit 77
}
trap clean EXIT INT TERM
command -v ip >/dev/null || skip "ip (iproute2) is not installed"
ip netns add "$name-w" 2>"$folder/why" || skip "network namespaces need root: $(cat "$folder/why")"
ip netns exec "$name-w" true 2>"$folder/why" ||
  skip "programs cannot be run in network namespaces here: $(cat "$folder/why")"
[ "$test_case" != one_way ] || command -v nft >/dev/null || skip "nft (nftables) is not installed"

# The wire: bridge br0 for data, br1 for the rendezvous where that has a network of its own.
for bridge in br0 br1; do
  ip -n "$name-w" link add $bridge type bridge 2>"$folder/why" ||
    skip "the kernel makes no bridges: $(cat "$folder/why")"
  ip -n "$name-w" link set $bridge up
done
number=0
for host in a b c; do
  number=$((number + 1))
  ip netns add "$name-$host"
  ip -n "$name-$host" link set lo up
  for net in 0 1; do
    ip link add eth$net netns "$name-$host" type veth peer name $host$net netns "$name-w"
    ip -n "$name-w" link set $host$net master br$net up
    ip -n "$name-$host" link set eth$net up
    ip -n "$name-$host" addr add 10.7$net.0.$number/24 dev eth$net
  done
done

unset CCOM_SOCKET_IFNAME CCOM_RANK NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME
export CCOM_NRANKS=3 CCOM_SECRET=a-secret-of-this-test CCOM_SOCKET_IFNAME=eth0

# shape HOST RATE: what the host sends
shape() {
  ip netns exec "$name-$1" tc qdisc add dev eth0 root tbf rate "$2" burst 64k latency 50ms 2>"$folder/why" ||
    skip "the kernel does not shape: $(cat "$folder/why")"
}

# Where connections are the matter: speeds that a busy machine reaches would be trouble of their own.
without_speed=
case $test_case in one_way | frames) without_speed=--no-speed ;; esac

# examine ADDRESS CODE HOST...: the hosts in the order of their ranks; rank 0's output in $folder/0
examine() {
  export CCOM_URL="tcp://$1:21000"
  wanted=$2
  shift 2
  rank=0
  pids=
  for host in "$@"; do
    CCOM_RANK=$rank CCOM_HOSTID=host-$host timeout 150 ip netns exec "$name-$host" "$doctor" --wait 20 $without_speed \
      >"$folder/$rank" 2>&1 &
    pids="$pids $!"
    rank=$((rank + 1))
  done
  code=0
  for pid in $pids; do wait "$pid" || code=$?; done
  cat "$folder/0"
  [ "$code" = "$wanted" ] || {
    echo "ended with $code, not $wanted"
    cat "$folder/1" "$folder/2"
    exit 1
  }
}
says() { grep -qE -- "$1" "$folder/0" || { echo "it does not say '$1'"; exit 1; }; }
omits() { ! grep -qE -- "$1" "$folder/0" || { echo "it should not say '$1'"; exit 1; }; }

case $test_case in
  healthy)
    for host in a b c; do shape $host 1gbit; done
    examine 10.70.0.1 0 a b c
    says '3 ranks on 3 hosts'
    says 'Connections: 6 of 6'
    omits 'trouble'
    ;;
  one_way)
    ip netns exec "$name-c" nft -f - <<RULES
table inet broken {
  chain incoming {
    type filter hook input priority 0;
    tcp flags & (syn | ack) == syn drop
  }
}
RULES
    examine 10.70.0.1 1 a b c
    says 'No other host can connect to host-c at 10.70.0.3 \(eth0\): Connection timed out'
    says 'host-a \(rank 0\): fine'
    says 'host-c \(rank 2\): trouble'
    ;;
  unreachable)
    ip -n "$name-a" route add blackhole 10.70.0.2/32
    examine 10.70.0.3 1 c a b
    says 'host-a and host-b cannot reach each other|host-b and host-a cannot reach each other'
    says 'host-c \(rank 0\): fine'
    says 'host-c - host-a|host-a - host-c'
    ;;
  frames)
    # c moves behind a router whose link takes less; the router's complaint does not come through.
    ip -n "$name-w" link set c0 nomaster mtu 1300
    ip -n "$name-w" addr add 10.72.0.254/24 dev c0
    ip -n "$name-w" addr add 10.70.0.254/24 dev br0
    ip netns exec "$name-w" sysctl -qw net.ipv4.ip_forward=1
    ip -n "$name-c" addr flush dev eth0
    ip -n "$name-c" addr add 10.72.0.3/24 dev eth0
    ip -n "$name-c" route add default via 10.72.0.254
    for host in a b; do
      ip -n "$name-$host" route add 10.72.0.0/24 via 10.70.0.254
      ip netns exec "$name-$host" sysctl -qw net.ipv4.conf.eth0.rp_filter=1
      ip -n "$name-$host" route add blackhole 10.70.0.254/32
    done
    examine 10.71.0.1 1 a b c
    says 'Small messages pass from host-a to host-c at 10.72.0.3 \(eth0\), 64 KiB do not'
    says 'A device on the path drops large frames'
    ;;
  shaped)
    for host in a b; do shape $host 1gbit; done
    shape c 100mbit
    examine 10.70.0.1 1 a b c
    says 'host-c sends to everybody at (9|1[0-9])(\.[0-9])? MB/s at most; the other hosts reach'
    says 'host-a \(rank 0\): (fine|works)'
    says 'host-c \(rank 2\): trouble'
    ;;
  two_networks)
    ip -n "$name-w" link set b0 down
    examine 10.71.0.1 1 a b c
    says 'host-b and the others cannot reach each other on the data network'
    says 'rendezvous at 10.71.0.1:21000'
    says 'host-a - host-c: .*B/s there'
    ;;
esac
echo "ok $test_case"
