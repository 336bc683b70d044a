#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tokens_c_test.sh TOKENS_C: three ranks send tokens to experts and get them back doubled.
set -u
. "$(dirname "$0")/ranks.sh"
code=0
run_ranks "$1" 3
for rank in 0 1 2; do
  ended $rank 0
  said $rank "rank $rank of 3: $((3 + 3 * rank)) tokens, $((3 + 3 * rank)) for this expert, 0 wrong"
done
exit $code
