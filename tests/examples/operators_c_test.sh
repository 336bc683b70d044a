#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# operators_c PROGRAM: three ranks compose their maps in rank order.
set -e
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for rank in 0 1 2; do
  CCOM_RANK=$rank CCOM_NRANKS=3 CCOM_URL=file://$folder/id "$program" > "$folder/$rank" &
done
wait
for rank in 0 1 2; do  # 2 (2 (2 x + 2) + 1) + 0
  grep -qx "rank $rank of 3: x -> 8 x + 10" "$folder/$rank" || { cat "$folder/$rank"; exit 1; }
done
