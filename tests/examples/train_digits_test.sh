#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# train_digits_test.sh TRAIN_DIGITS COMPARE_CURVES: one rank, four processes and four threads learn the same (losses
# within 1e-4 in every epoch), and what they learn is good (accuracy above 0.95).
set -u
train=$1
compare=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
unset CCOM_RANK CCOM_NRANKS CCOM_URL

learn() {  # NAME FLAGS...
  name=$1
  shift
  "$train" "$@" --epochs 20 --curve "$folder/$name.csv" >"$folder/$name.txt" || { cat "$folder/$name.txt"; exit 1; }
  tail -n 1 "$folder/$name.txt"
  awk 'END { exit !($NF > 0.95) }' "$folder/$name.txt" || { echo "$name: accuracy too low"; exit 1; }
}

learn one -np 1
learn processes -np 4
learn threads -np 4 --threads
"$compare" "$folder/one.csv" "$folder/processes.csv" 1e-4 || exit 1
"$compare" "$folder/one.csv" "$folder/threads.csv" 1e-4 || exit 1
# Processes and threads combine in the same order: not close, but equal.
cmp "$folder/processes.csv" "$folder/threads.csv"
