#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# operators_c_test.sh OPERATORS_C: three ranks compose their maps in rank order.
set -u
. "$(dirname "$0")/ranks.sh"
code=0
run_ranks "$1" 3
for rank in 0 1 2; do # 2 (2 (2 x + 2) + 1) + 0
  ended $rank 0
  said $rank "rank $rank of 3: x -> 8 x + 10"
done
exit $code
