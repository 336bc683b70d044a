#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#   version_test.sh SOURCE VERSION
# CMakeLists.txt's version stands in the header, the Python package, the Debian packages and the documents. The
# functions of ccom.h are those of the version script and of Debian's symbols file, each with the same version there.
set -eu
cd "$1"
number=$(echo "$2" | sed 's/\./\\./g')
minor=${2%.*}
status=0
# says FILE PATTERN: a line of the file matches.
says() { grep -qE -- "$2" "$1" || { echo "$1 does not say version $3"; status=1; }; }
says include/ccom/ccom.h "^#define CCOM_MAJOR ${2%%.*}$" "$2"
says include/ccom/ccom.h "^#define CCOM_MINOR ${minor#*.}$" "$2"
says include/ccom/ccom.h "^#define CCOM_PATCH ${2##*.}$" "$2"
says src/base/version.h "\"$number\"" "$2"
says python/pyproject.toml "^version = \"$number\"$" "$2"
says python/ccom/__init__.py "^__version__ = \"$number\"$" "$2"
says README.md "^Version $minor( |$)" "$minor"
says docs/versions.md "^The present version is ${number}[,.]" "$2"
[ "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)" = "$2" ] ||
  { echo "CHANGELOG.md's first version is not $2"; status=1; }
# Names of wheels and images in documents and manifests.
others=$(git grep -nE '(ccom-[0-9.]+-cp3|/ccom:[0-9])' -- '*.md' examples scripts |
  grep -vE "ccom[-:]$number(-cp3| |$)" || true)
[ -z "$others" ] || { echo "of another version: $others"; status=1; }
head -n 1 debian/changelog | grep -q "^ccom ($number)" ||
  { echo "debian/changelog: $(head -n 1 debian/changelog)"; status=1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
grep '^CCOM_API' include/ccom/ccom.h | grep -o 'ccom[A-Z][A-Za-z]*(' | tr -d '(' | sort >"$folder/header"
# "function node" of each line, by the node that it stands in.
sed -n -e 's/^\(CCOM_[0-9.]*\) {$/node \1/p' -e 's/^ *\(ccom[A-Z][A-Za-z]*\);$/\1/p' src/api/ccom.map |
  awk '$1 == "node" { node = $2; next } { print $1, node }' | sort >"$folder/map"
sed -n 's/^ \(ccom[A-Z][A-Za-z]*\)@\([^ ]*\) .*/\1 \2/p' debian/libccom0.symbols | sort >"$folder/symbols"
cut -d' ' -f1 "$folder/map" | diff "$folder/header" - ||
  { echo "ccom.h (<) and src/api/ccom.map (>) have other functions"; status=1; }
diff "$folder/map" "$folder/symbols" ||
  { echo "src/api/ccom.map (<) and debian/libccom0.symbols (>) differ"; status=1; }
exit $status
