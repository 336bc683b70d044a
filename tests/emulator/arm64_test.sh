#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything for arm64 and runs what an emulator can (scripts/build-arm64 --test): a quarter of an hour to build
# and as long to run.
set -euo pipefail
for program in aarch64-linux-gnu-g++ qemu-aarch64 mmdebstrap; do
  command -v $program >/dev/null || { echo "skipped: needs $program (scripts/install-dependencies --arm64)"; exit 77; }
done
exec "$CCOM_SOURCE_DIR/scripts/build-arm64" --test
