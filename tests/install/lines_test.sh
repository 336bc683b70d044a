#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   lines_test.sh SOURCE DOCUMENT
# The command lines of DOCUMENT (its indented code blocks), in their order and in one shell, in a Debian 12 that
# debootstrap has just made: nothing is there but a git clone of the project, and what the lines before have installed.
# The clone has the tracked files as they are. A fenced block marked `<!-- test: NAME.EXTENSION -->` becomes a file of
# that name; one of `text` is what the line before it prints. Lines in `left_out` below are not run; each has its
# reason. One day in six.
#
# So that it takes minutes, the tree shares with the machine: ccache, which no line installs, what pip has downloaded,
# and what scripts/build-wheel keeps of Debian's sources and torch's packages.
set -euo pipefail
. "$(dirname "$0")/debian_tree.sh"
due debian
in_own_namespaces "$@"
source=$(realpath "$1")
document=$2
cd "$source"

left_out() {
  case $1 in
    scripts/test*) echo "runs all tests, this one too" ;;
  esac
}

make_tree git ccache
share_pip
clone=$source  # paths are part of what ccache knows a file by
git clone --quiet "$source" "$tree$clone"
git ls-files -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar -c --null -T - | tar -x -C "$tree$clone"
share "${CCACHE_DIR:-$(ccache --get-config cache_dir 2>/dev/null || echo ~/.cache/ccache)}" /root/.cache/ccache
share ~/.cache/pip /root/.cache/pip
for kept in archives torch-311; do share "$source/build/wheel/$kept" "$clone/build/wheel/$kept"; done

# One script of all lines. It says which one runs, and how long that took.
lines() {
  local number=0 line reason fenced='' file=''
  while IFS= read -r line; do
    number=$((number + 1))
    if [ -n "$fenced" ]; then
      [ "$line" != '```' ] || { fenced=; echo 'END_OF_BLOCK'; continue; }
      printf '%s\n' "$line"
      continue
    fi
    case $line in
      '<!-- test: '*.*' -->') file=${line#<!-- test: } file=${file% -->} ;;
      '```text') fenced=yes; echo "printed <<'END_OF_BLOCK'" ;;
      '```'*) fenced=yes; echo "cat >${file:-/dev/null} <<'END_OF_BLOCK'"; file= ;;
    esac
    [ -z "$fenced" ] || continue
    case $line in '    '[!\ ]*) line=${line#    } ;; *) continue ;; esac
    reason=$(left_out "$line")
    if [ -n "$reason" ]; then
      printf 'say %q\n' "left out, $reason: $line"
    else
      printf 'begin %q\n%s\nend\n' "$document:$number: $line" "$line"
    fi
  done <"$document"
}
cat >"$tree/root/lines" <<'L'
set -eo pipefail
exec 3>&1 >/root/log 2>&1
say() { echo "$1" >&3; }
begin() { current=$1; started=$SECONDS; echo "$1"; offset=$(stat -c %s /root/log); }
printed() { tail -c "+$((offset + 1))" /root/log | diff - <(cat); }
end() { say "$((SECONDS - started)) s: $current"; }
trap 'status=$?; [ $status = 0 ] || { tail -n 60 /root/log; echo "failed, $status: $current"; } >&3' EXIT
L
lines >>"$tree/root/lines"
[ "$(grep -c '^begin ' "$tree/root/lines")" -ge 5 ] || { echo "$document has hardly any lines"; exit 1; }
# Of the torch minors that a wheel is for, the one whose package is small.
inside TORCHES=2.13 sh -c "cd $clone && bash /root/lines"
echo "lines test passed: $document"
