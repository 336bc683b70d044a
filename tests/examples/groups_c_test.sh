#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# groups_c_test.sh GROUPS_C: four ranks by hand; rows are {0,1} and {2,3}, columns {0,2} and {1,3}.
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
for rank in $ranks; do wait "$rank" || code=1; done
cat "$folder/0" "$folder/1" "$folder/2" "$folder/3"
grep -q '^rank 0 of 4: row 1, column 2$' "$folder/0" || code=1
grep -q '^rank 1 of 4: row 1, column 4$' "$folder/1" || code=1
grep -q '^rank 2 of 4: row 5, column 2$' "$folder/2" || code=1
grep -q '^rank 3 of 4: row 5, column 4$' "$folder/3" || code=1
exit $code
