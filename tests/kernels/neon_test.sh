#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   neon_test.sh FOLDER
# That the kernels compile for NEON. Highway's headers are the same everywhere; a link in the folder keeps those of the
# host beside them out of sight. GCC finds what cannot be inlined without optimising.
set -euo pipefail
if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  echo "skipped: needs aarch64-linux-gnu-g++ (scripts/install-dependencies --arm64)"
  exit 77
fi
mkdir -p "$1"
ln -sfn "$(dirname "$(echo '#include <hwy/highway.h>' | g++ -xc++ -M - | grep -o '/[^ ]*/hwy/highway\.h')")" "$1/hwy"
exec aarch64-linux-gnu-g++ -std=c++20 -O0 -Wall -Wextra -Wshadow -Werror -ffp-contract=off "-I$CCOM_SOURCE_DIR/src" \
  "-I$CCOM_SOURCE_DIR" \
  -isystem "$1" -c "$CCOM_SOURCE_DIR/src/kernels/kernels.cc" -o "$1/kernels.o"
