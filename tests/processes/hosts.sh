# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# Sourced by tests that run ccom-bench on hosts that CCOM_HOSTID names. They set `bench` and `folder`, where ranks
# write, and `seconds`, if ranks may take more than 100.

# run_hosts NAME HOSTS OPTION_OF_CCOM_BENCH...: a rank for each digit of HOSTS, its host; every program is proved before
# it runs, and every byte checked. A rank's output is in NAME.RANK. Variables of all ranks come from the caller's
# environment; those of each rank from `of_rank RANK`, which prints VARIABLE=VALUE. Returns 1 if a rank has failed.
run_hosts() {
  local name=$1 hosts=$2 rank own pids=() failed=0
  shift 2
  for ((rank = 0; rank < ${#hosts}; ++rank)); do
    read -ra own < <(of_rank "$rank") || true
    env "${own[@]}" CCOM_VERIFY=1 CCOM_RANK=$rank CCOM_NRANKS=${#hosts} CCOM_URL="file://$folder/$name" \
      CCOM_HOSTID="host${hosts:rank:1}" timeout "${seconds:-100}" "$bench" "$@" -n 1 -w 0 --check every \
      --no-progress >"$folder/$name.$rank" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return $failed
}
of_rank() { :; }

# report NAME STATUS: whether that run ended well with right values; else what its ranks wrote last.
report() {
  if [ "$2" = 0 ] && grep -q 'wrong values: 0 OK' "$folder/$1.0"; then
    echo "ok: $1"
  else
    echo "FAILED: $1"
    tail -n 5 "$folder/$1".*
    return 1
  fi
}
