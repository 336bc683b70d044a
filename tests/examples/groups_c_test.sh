#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# groups_c_test.sh GROUPS_C: four ranks; rows are {0,1} and {2,3}, columns {0,2} and {1,3}.
set -u
. "$(dirname "$0")/ranks.sh"
code=0
run_ranks "$1" 4
for rank in 0 1 2 3; do ended $rank 0; done
said 0 'rank 0 of 4: row 1, column 2'
said 1 'rank 1 of 4: row 1, column 4'
said 2 'rank 2 of 4: row 5, column 2'
said 3 'rank 3 of 4: row 5, column 4'
exit $code
