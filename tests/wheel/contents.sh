#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# contents.sh SOURCE WHEEL FOLDER: what a wheel that scripts/build-wheel has made in SOURCE asks of a host and shows to
# it; unpacked in FOLDER/unpacked. auditwheel names the platform; all is for the processor of the wheel's name; nothing
# but ccom* is exported by libccom, the module's entry by an extension; no folder of this machine is named; below 30 MB.
set -euo pipefail
shopt -s extglob
source=$1
wheel=$2
folder=$3
fail() {
  echo "failed: $*"
  exit 1
}

auditwheels=("$(dirname "$wheel")"/../python-*/bin/auditwheel)
auditwheel=${auditwheels[0]}
PATH=$(dirname "$auditwheel"):$PATH "$auditwheel" show "$wheel" >"$folder/show" 2>&1 || { cat "$folder/show"; exit 1; }
tr '\n' ' ' <"$folder/show" | grep -qE 'constrains the platform tag to "manylinux_2_3[0-6]_' ||
  { cat "$folder/show"; fail "it needs a newer glibc than Debian 12's"; }
case $wheel in *-manylinux_2_3[0-6]_*.whl) ;; *) fail "the name does not say which glibc: $wheel" ;; esac
bytes=$(stat -c %s "$wheel")
[ "$bytes" -lt 30000000 ] || fail "$bytes bytes"

/usr/bin/python3 -m zipfile -e "$wheel" "$folder/unpacked"
processors=$(find "$folder/unpacked" -type f -exec readelf -h {} \; 2>/dev/null | sed -n 's/^ *Machine: *//p' | sort |
  uniq -c | xargs)
case ${wheel##*-manylinux_2_??_}:$processors in
  aarch64.whl:+([0-9])' AArch64' | x86_64.whl:+([0-9])' Advanced Micro Devices X86-64') ;;
  *) fail "its libraries and programs are for $processors" ;;
esac
! grep -rlF -e "$source/" -e "$HOME/" "$folder/unpacked" || fail "these name folders of this machine"
exported() { nm -D --defined-only "$1" | awk '{print $NF}' |
  grep -vxE '__bss_start|_edata|_end|_?_bss_(start|end)__|__end__' | sort; }
foreign=$(exported "$folder/unpacked/ccom/lib/libccom.so.0" | grep -v -e '^ccom[A-Z]' -e '^CCOM_0\.' || true)
[ -z "$foreign" ] || fail "libccom exports $foreign"
for module in "$folder"/unpacked/ccom/torch/torch_*/_backend*.so; do
  exported "$module" >"$folder/names"
  [ "$(grep -v '^_Z' "$folder/names")" = PyInit__backend ] ||
    fail "$module exports $(grep -v '^_Z' "$folder/names" | xargs)"
  # Inline functions of torch's headers are visible, as in every extension. None is of a library that others carry too.
  ! grep -E '^_Z[A-Z]*N?K?(8google|4grpc|9grpc_core|4absl|4ccom)' "$folder/names" || fail "$module exports these"
done
module=$(ls "$folder"/unpacked/ccom/_core*.so)
exported "$module" >"$folder/names"
[ "$(grep -v "^_Z" "$folder/names")" = PyInit__core ] || fail "$module exports $(grep -v "^_Z" "$folder/names" | xargs)"
echo "$(basename "$wheel"), $bytes bytes, $processors"
