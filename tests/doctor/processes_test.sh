#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# processes_test.sh CCOM_DOCTOR: whole examinations of one machine, as one host and as several by CCOM_HOSTID: all well,
# a rank that never comes, a rank that is killed, an interface that is not there, half of a launcher's variables.
set -u
doctor=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export CCOM_SOCKET_IFNAME=lo
unset CCOM_RANK CCOM_NRANKS CCOM_URL
failed=0

# expect NAME CODE WANTED-CODE FILE TEXT...: the exit code, and what the file holds
expect() {
  name=$1 code=$2 wanted=$3 file=$4
  shift 4
  problem=
  [ "$code" = "$wanted" ] || problem="ended with $code, not $wanted"
  for text in "$@"; do grep -qE -- "$text" "$file" || problem="$problem; no '$text'"; done
  if [ -n "$problem" ]; then
    echo "FAILED $name: $problem"
    cat "$file"
    failed=1
  else
    echo "ok $name"
  fi
}

# hosts NAME RANKS ARGUMENT...: that many emulated hosts of one rank; rank 0's code in $code, outputs in
# $folder/NAME.RANK
hosts() {
  case_name=$1 ranks=$2
  shift 2
  export CCOM_NRANKS="$ranks" CCOM_URL="file://$folder/$case_name-id"
  pids=
  rank=0
  while [ $rank -lt "$ranks" ]; do
    if [ "$rank" != "${absent:-none}" ]; then
      interface=lo
      [ "$rank" = "${lost:-none}" ] && interface=nosuch0
      CCOM_RANK=$rank CCOM_HOSTID=host-$rank CCOM_SOCKET_IFNAME=$interface timeout 120 "$doctor" "$@" \
        >"$folder/$case_name.$rank" 2>&1 &
      eval "pid$rank=$!"
      pids="$pids $!"
    fi
    rank=$((rank + 1))
  done
}
finish() {
  # shellcheck disable=SC2154
  wait "$pid0"
  code=$?
  for pid in $pids; do wait "$pid"; done
  unset CCOM_NRANKS CCOM_URL
}

timeout 120 "$doctor" -np 3 >"$folder/alone" 2>&1
expect "one host" $? 0 "$folder/alone" '3 ranks on 1 host,' 'All ranks: a communicator started' 'Verdict: (fine|works)'

hosts three 3 --no-speed
finish
expect "three hosts" $code 0 "$folder/three.0" '3 ranks on 3 hosts' '6 of 6 directions' 'Verdict: fine'

# What the speeds of a busy machine mean is not asked here.
hosts speeds 3
finish
expect "three hosts measured" 0 0 "$folder/speeds.0" 'host-0 - host-2: .*B/s there' \
  'All ranks: a communicator started' 'Verdict: '

hosts json 2 --json --no-speed
finish
expect "JSON" $code 0 "$folder/json.0" '"verdict":"fine"' '"host":"host-1"' '"speeds":\[\]'

absent=2
hosts missing 3 --wait 10  # a loaded machine takes seconds to start
unset absent
finish
expect "a rank that never comes" $code 1 "$folder/missing.0" 'rank 2' 'Verdict: trouble'
expect "what the others say of it" 0 0 "$folder/missing.1" 'rank 1 on host-1: .*rank 2'

lost=1
hosts lost 3 --no-speed
unset lost
finish
expect "an interface that is not there" $code 1 "$folder/lost.0" 'host-1 \(rank 1\): trouble' \
  'no data address: .*nosuch0' \
  'host-2 \(rank 2\): fine'

# Stopped, it holds its connections, and only deadlines end the wait; killed, they break.
hosts killed 3
sleep 1
# shellcheck disable=SC2154
child=$(cat "/proc/$pid2/task/$pid2/children")
kill -9 "$child"
finish
expect "a rank that is killed" $code 1 "$folder/killed.0" 'rank 2' 'Verdict: trouble'

RANK=0 timeout 60 "$doctor" >"$folder/half" 2>&1
expect "half of a launcher's variables" $? 3 "$folder/half" 'RANK is set but WORLD_SIZE is not'
exit $failed
