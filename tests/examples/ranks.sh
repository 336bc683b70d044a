# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# For tests of examples that are started by hand: sourced.

# run_ranks PROGRAM N: N ranks on this host. Of each: its output in $folder/RANK, its exit code in $folder/RANK.code.
run_ranks() {
  folder=$(mktemp -d) || exit 1
  trap 'rm -rf "$folder"' EXIT
  for rank in $(seq 0 $(($2 - 1))); do
    (
      CCOM_RANK=$rank CCOM_NRANKS=$2 CCOM_URL="file://$folder/id" "$1" >"$folder/$rank" 2>&1
      echo $? >"$folder/$rank.code"
    ) &
  done
  wait
  for rank in $(seq 0 $(($2 - 1))); do cat "$folder/$rank"; done
}

# ended RANK CODE
ended() { [ "$(cat "$folder/$1.code")" -eq "$2" ] || { echo "rank $1 has not ended with $2"; code=1; }; }
# said RANK LINE
said() { grep -qxF "$2" "$folder/$1" || { echo "rank $1 has not said: $2"; code=1; }; }
