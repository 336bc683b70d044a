#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build into a fresh prefix and builds a C99 program against it: by find_package (shared and static) and by pkg-config.
# Also: the shared library exports the C API and nothing else.
set -eu
build=$1
consumer=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/prefix" >/dev/null

cmake -G Ninja -S "$consumer" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
cmake --build "$folder/build" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
"$folder/build/consumer"
"$folder/build/consumer_static"

library=$(find "$folder/prefix" -name libccom.so)
PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
cc -std=c99 $(pkg-config --cflags ccom | sed "s#-I[^ ]*#-I$folder/prefix/include#") "$consumer/consumer.c" -o "$folder/by_pkg_config" \
  -L"$(dirname "$library")" $(pkg-config --libs-only-l ccom) -Wl,-rpath,"$(dirname "$library")"
"$folder/by_pkg_config"

readelf -d "$library" | grep -q 'SONAME.*libccom\.so\.0' || { echo "no SONAME libccom.so.0"; exit 1; }
foreign=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^ccom[A-Z]' | grep -v '^CCOM_0' || true)
[ -z "$foreign" ] || { echo "exported beside the C API: $foreign"; exit 1; }
echo "install test passed"
