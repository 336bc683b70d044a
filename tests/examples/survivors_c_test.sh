#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# survivors_c_test.sh SURVIVORS_C: four ranks, of which the last kills itself; the sum is that of three then.
set -u
. "$(dirname "$0")/ranks.sh"
code=0
run_ranks "$1" 4
ended 3 137 # by SIGKILL
for rank in 0 1 2; do
  ended $rank 0
  said $rank '3 ranks are left: 0 1 2'
  said $rank "rank $rank of 4: the last sum is 3"
done
exit $code
