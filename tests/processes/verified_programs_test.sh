#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every collective on hosts of one form, each program proved before it runs (CCOM_VERIFY=1), every byte checked.
#   verified_programs_test.sh PATH_OF_CCOM_BENCH HOSTS TRANSPORTS     HOSTS: the host of each rank, one digit a rank
set -euo pipefail
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$(dirname "$0")/hosts.sh"
seconds=200
failed=0
CCOM_TRANSPORT=$3 run_hosts ranks "$2" all -d float32,bfloat16 --sizes 0,8,4K,300K --timeout 150 || failed=1
report ranks $failed
