#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the build into a fresh prefix, moves that elsewhere, and uses what it holds: a C99 program is built against
# it by find_package and by pkg-config (shared and static), and the installed programs start and have man pages and
# completions. Also: README.md's lines for C print what stands below them, a prefix in the source tree is refused, and
# the shared library exports the C API and nothing else.
set -euo pipefail
build=$1
consumer=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sources=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
for prefix in "$sources" "$sources/installed"; do
  if cmake --install "$build" --prefix "$prefix" >"$folder/log" 2>&1; then
    echo "installed into the source tree: $prefix"
    exit 1
  fi
  grep -q 'lies in the source tree' "$folder/log" || { cat "$folder/log"; exit 1; }
  [ ! -e "$prefix/share/man" ] || { echo "$prefix/share/man: installed into the source tree"; exit 1; }
done
cmake --install "$build" --prefix "$folder/installed" >/dev/null
mv "$folder/installed" "$folder/prefix"
library=$(find "$folder/prefix" -name libccom.so)
libraries=$(dirname "$library")

cmake -G Ninja -S "$consumer" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/log" 2>&1 ||
  { cat "$folder/log"; exit 1; }
cmake --build "$folder/build" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
"$folder/build/consumer"
"$folder/build/consumer_static"

# find_package accepts what this version promises to be compatible with: docs/versions.md
cat >"$folder/accepts.cmake" <<'C'
foreach(version 0.9 0.9.0 0.99 1.0)
  string(REGEX MATCH "^[0-9]+" PACKAGE_FIND_VERSION_MAJOR ${version})
  set(PACKAGE_FIND_VERSION ${version})
  include(${FILE})
  if(PACKAGE_VERSION_COMPATIBLE)
    list(APPEND accepted ${version})
  endif()
endforeach()
if(NOT accepted STREQUAL "0.9;0.9.0")
  message(FATAL_ERROR "ccom ${PACKAGE_VERSION}: find_package accepts ${accepted}")
endif()
C
cmake -DFILE="$libraries/cmake/ccom/ccomConfigVersion.cmake" -DCMAKE_SIZEOF_VOID_P=8 -P "$folder/accepts.cmake"

export PKG_CONFIG_PATH="$libraries/pkgconfig"
# shellcheck disable=SC2046
cc -std=c99 "$consumer/consumer.c" -o "$folder/by_pkg_config" $(pkg-config --cflags --libs ccom) -Wl,-rpath,"$libraries"
"$folder/by_pkg_config"
# Nothing beside the folder; some versions print a space behind it.
flags=$(pkg-config --cflags ccom | sed 's/ *$//')
[ "$flags" = "-I$folder/prefix/lib/pkgconfig/../../include" ] || { echo "flags beside the folder: $flags"; exit 1; }
mkdir "$folder/archive"
cp "$libraries/libccom.a" "$folder/archive"
# shellcheck disable=SC2046
cc -std=c99 "$consumer/consumer.c" -o "$folder/static_by_pkg_config" -L"$folder/archive" \
  $(pkg-config --static --cflags --libs-only-l ccom)
"$folder/static_by_pkg_config"

# README.md's C: the program, and the lines between it and its output, with this prefix.
readme() { python3 "$(dirname "$0")/../doors/programs.py" "$sources/README.md" "$@"; }
readme sum.c >"$folder/sum.c"
lines=$(readme --lines sum.c | sed "s|~/.local/ccom|$folder/prefix|g; s|\$HOME/.local/ccom|$folder/prefix|g")
(cd "$folder" && PATH=$folder/prefix/bin:$PATH sh -e -c "$lines") >"$folder/printed"
readme --output sum.c | diff - "$folder/printed"

# What is preloaded needs no MPI, and finds libccom beside its folder.
LD_BIND_NOW=1 LD_PRELOAD="$libraries/ccom/libccom-mpi.so" sh -c true 2>"$folder/log"
[ ! -s "$folder/log" ] || { cat "$folder/log"; exit 1; }
readelf -d "$libraries/ccom/libccom-mpi.so" | grep -q 'RUNPATH.*\[$ORIGIN/\.\.\]' ||
  { echo "libccom-mpi.so: no RUNPATH to libccom"; exit 1; }

# Every program says its version, and has a man page without a warning and completions.
for program in "$folder"/prefix/bin/*; do
  "$program" --version | grep -q "^$(basename "$program") [0-9]" || { echo "$program --version: no version"; exit 1; }
  page=$folder/prefix/share/man/man1/$(basename "$program").1
  grep -q '^\.SH EXAMPLES' "$page" || { echo "$page has no examples"; exit 1; }
  warnings=$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  [ -z "$warnings" ] || { echo "$page: $warnings"; exit 1; }
done
bash "$(dirname "$0")/completions_test.sh" "$folder/prefix" bash

readelf -d "$library" | grep -q 'SONAME.*libccom\.so\.0' || { echo "no SONAME libccom.so.0"; exit 1; }
foreign=$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^ccom[A-Z]' | grep -v '^CCOM_0\.' || true)
[ -z "$foreign" ] || { echo "exported beside the C API: $foreign"; exit 1; }
echo "install test passed"
