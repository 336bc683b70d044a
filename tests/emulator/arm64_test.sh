#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# arm64_test.sh SOURCES: builds everything for arm64 and runs what an emulator can (scripts/build-arm64 --test). On demand: it takes
# a quarter of an hour to build and as long to run.
set -euo pipefail
if [ -z "${CCOM_TEST_LONG:-}" ]; then
  echo "skipped: CCOM_TEST_LONG=1 runs it"
  exit 77
fi
exec "$1/scripts/build-arm64" --test
