#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   abi_test.sh SOURCE LIBRARY
# The library has the ABI of the last release (scripts/check-abi). Then changes of a copy of header and map, to see that
# each incompatible one is found and that the others pass.
set -euo pipefail
command -v abidiff >/dev/null || { echo "skipped: abidiff is not installed"; exit 77; }
cd "$1"
scripts/check-abi "$2"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
# after WHAT SED [SED of the map]: scripts/check-abi on a copy whose header was changed.
after() {
  rm -rf "$folder/copy"
  mkdir "$folder/copy"
  tar -c CMakeLists.txt include src/api/ccom.map scripts/check-abi tests/abi | tar -x -C "$folder/copy"
  sed -E -i "$2" "$folder/copy/include/ccom/ccom.h"
  sed -E -i "${3:-}" "$folder/copy/src/api/ccom.map"
  ! cmp -s include/ccom/ccom.h "$folder/copy/include/ccom/ccom.h" ||
    { echo "no change: $1"; failures=$((failures + 1)); }
  "$folder/copy/scripts/check-abi" ${library:+"$library"} >"$folder/log" 2>&1
}
accepted() { after "$@" || { cat "$folder/log"; echo "compatible, but refused: $1"; failures=$((failures + 1)); }; }
# Refused because of what stands in `because`.
refused() {
  ! after "$@" || { echo "incompatible, but accepted: $1"; failures=$((failures + 1)); }
  grep -q "$because" "$folder/log" || 
    { cat "$folder/log"; echo "refused for another reason: $1"; failures=$((failures + 1)); }
}
because='abidiff ended with'
library=

# "  const char\* name", of the last field
last=$(awk '/^} ccomConfig_t;/ { print field; exit } /^  [a-z].*;/ { field = $0 }' include/ccom/ccom.h |
  sed 's/;.*//; s/[*]/\\*/g')
accepted "fields at the end of a structure that grows" "s/^$last;.*/&\n  int first;\n  int second[4];/"
accepted "a field at the end of the list's descriptions" 's/^  const char\* help;/&\n  const char* more;/'
accepted "an enumerator" 's/^  ccomResultForceInt/  ccomNew = 44,\n&/'
accepted "a type" \
  's/^typedef int ccomRedOp_t;/&\ntypedef enum {\n  ccomA = 0,\n  ccomAForceInt = 0x7fffffff\n} ccomA_t;/'
refused "a field in the middle" 's/^  int messages;.*/  int first;\n  int second;\n&/'
refused "a field at the end, and another type" \
  "s/^$last;.*/&\n  int64_t first;/; s/^  int64_t roundingSeed;/  double roundingSeed;/"
refused "fields in another order" \
  's/^  int nranks;/  int between;/; s/^  int nhosts;/  int nranks;/; s/^  int between;/  int nhosts;/'
refused "a field of another type" 's/^  int64_t timeoutMs;/  uint64_t timeoutMs;/'
refused "the last field removed" "/^$last;.*/d"
refused "a shorter text" 's/^  char text\[1024\]/  char text[512]/'
refused "a field at the end of a structure that does not grow" 's/^  char internal\[.*/&\n  int more;/'
refused "the number of an operator" 's/ccomLor = 12/ccomLor = 13/'
refused "the number of a level" 's/ccomLogDebug = 3/ccomLogDebug = 4/'
refused "a number" 's/^(#define CCOM_ANY_RANK) \(-1\)/\1 (-2)/'
refused "the magic number" 's/0xcc0515edu/0xcc0515eeu/'
refused "another parameter" 's/(ccomGroupEnd\()void/\1int x/'
refused "a parameter of another width" 's/(ccomMessageWait\(ccomMessage_t message, )int64_t/\1int32_t/'
refused "the parameter of a callback" 's/(\*ccomLogFn\)\()ccomLogLevel_t/\1int64_t/'
refused "a function removed" '/ccomGroupEnd\(void\)/d'


# A function that came later: in a node of its own, in that of a release, not in the library.
later='s/^CCOM_API ccomResult_t ccomGroupEnd.*/&\nCCOM_API ccomResult_t ccomLater(int x);/'
accepted "a function in a node of its own" "$later" '$a\CCOM_0.99 { global: ccomLater; } CCOM_0.9;'
because='belongs in a node of its own'
refused "a function in the node of a release" "$later" 's/^    ccomMemAlloc;/&\n    ccomLater;/'
because='exports others'
library=$2
refused "a function that the library lacks" "$later" '$a\CCOM_0.99 { global: ccomLater; } CCOM_0.9;'

[ $failures = 0 ] || exit 1
echo "abi test passed"
