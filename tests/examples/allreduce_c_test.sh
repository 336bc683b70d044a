#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# allreduce_c_test.sh ALLREDUCE_C: three ranks started by hand through CCOM_RANK, CCOM_NRANKS and CCOM_URL get 6.
set -u
program=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export CCOM_NRANKS=3 CCOM_URL="file://$folder/id"
CCOM_RANK=1 "$program" >"$folder/1" 2>&1 &
first=$!
CCOM_RANK=2 "$program" >"$folder/2" 2>&1 &
second=$!
CCOM_RANK=0 "$program" >"$folder/0" 2>&1
code=$?
wait $first || code=1
wait $second || code=1
cat "$folder/0" "$folder/1" "$folder/2"
[ "$(grep -c 'of 3: sum 6, expected 6' "$folder/0" "$folder/1" "$folder/2" | grep -c ':1$')" = 3 ] || code=1
exit $code
