#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#   version_test.sh SOURCE VERSION
# Packages carry the project's version, and every public function of ccom.h has a line in the symbols file, and no other.
set -eu
cd "$1"
head -n 1 debian/changelog | grep -q "^ccom ($2)" || { echo "debian/changelog: $(head -n 1 debian/changelog)"; exit 1; }
declared=$(grep -o 'ccom[A-Z][A-Za-z]*(' include/ccom/ccom.h | tr -d '(' | sort -u)
for symbol in $(sed -n 's/^ \(ccom[A-Z][A-Za-z]*\)@CCOM_0 .*/\1/p' debian/libccom0.symbols); do
  echo "$declared" | grep -qx "$symbol" || { echo "debian/libccom0.symbols: $symbol is not in ccom.h"; exit 1; }
done
for function in $(grep '^CCOM_API' include/ccom/ccom.h | grep -o 'ccom[A-Z][A-Za-z]*(' | tr -d '('); do
  grep -q "^ $function@CCOM_0 " debian/libccom0.symbols || { echo "debian/libccom0.symbols lacks $function"; exit 1; }
done
