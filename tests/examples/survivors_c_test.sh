#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# survivors_c_test.sh SURVIVORS_C: four ranks by hand, of which the last kills itself; the sum is that of three then.
set -u
program=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export CCOM_NRANKS=4 CCOM_URL="file://$folder/id"
ranks=
for rank in 1 2 3; do
  CCOM_RANK=$rank "$program" >"$folder/$rank" 2>&1 &
  ranks="$ranks $!"
done
CCOM_RANK=0 "$program" >"$folder/0" 2>&1
code=$?
for rank in $ranks; do
  wait "$rank"
  ended=$?
  [ $ended -eq 0 ] || [ $ended -eq 137 ] || code=1 # 137: by SIGKILL
done
[ "$ended" -eq 137 ] || code=1
cat "$folder/0" "$folder/1" "$folder/2" "$folder/3"
for rank in 0 1 2; do
  grep -q "^3 ranks are left$" "$folder/$rank" || code=1
  grep -q "^rank $rank of 4: the last sum is 3$" "$folder/$rank" || code=1
done
exit $code
