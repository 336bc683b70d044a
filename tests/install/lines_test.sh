#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   lines_test.sh SOURCE DOCUMENT 12|13 [--cold]
# The command lines of DOCUMENT (its indented code blocks), in their order and in one shell, in a Debian 12 or 13 that
# debootstrap has just made: nothing is there but a git clone of the project, and what the lines before have installed.
# The clone has the tracked files as they are. A fenced block marked `<!-- test: NAME.EXTENSION -->` becomes a file of
# that name; one of `text` is what the line before it prints. Lines in `left_out` below are not run; each has its
# reason.
#
# It prints what each line took: seconds, processor time of its processes, and the most memory that all of them had for
# themselves at a time. So that it takes minutes, the tree shares with the machine what pip has downloaded, and ccache,
# which no line installs. With --cold there is no ccache.
set -euo pipefail
. "$(dirname "$0")/debian_tree.sh"
in_own_namespaces "$@"
source=$(realpath "$1")
document=$2
debian=$3
cold=${4:-}
cd "$source"

left_out() {
  case $1 in
    scripts/test*) echo "runs all tests, this one too" ;;
  esac
}

if [ "$cold" = --cold ]; then
  make_tree git
else
  make_tree git ccache
  share_ccache
fi
clone "$source"
share_pip
share ~/.cache/pip /root/.cache/pip

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
processor_seconds() {  # of what has ended
  times >/root/times
  used=$(awk 'NR == 2 { for (i = 1; i <= 2; ++i) { split($i, part, /[ms]/); sum += 60 * part[1] + part[2] }
                        printf "%d", sum }' /root/times)
}
begin() {
  current=$1
  processor_seconds
  started=$SECONDS used_before=$used
  echo 0 >/root/peak
  echo "$1"
  offset=$(stat -c %s /root/log)
}
printed() { diff <(tail -c "+$((offset + 1))" /root/log) -; }
end() {
  processor_seconds
  say "$((SECONDS - started)) s, $((used - used_before)) s of processor time, $(cat /root/peak) MB: $current"
}
trap 'status=$?; [ $status = 0 ] || { tail -n 60 /root/log; echo "failed, $status: $current"; } >&3' EXIT
L
lines >>"$tree/root/lines"
[ "$(grep -c '^begin ' "$tree/root/lines")" -ge 5 ] || { echo "$document has hardly any lines"; exit 1; }

# Of the processes here, all of which are this test's: what is resident and not shared.
watch_memory() {
  local now
  while sleep 0.5; do
    # A process may end between its name and its file.
    now=$({ cat /proc/[0-9]*/statm || true; } 2>/dev/null |
      awk '{ pages += $2 - $3 } END { print int(pages * 4096 / 1e6) }')
    [ "$now" -le "$(cat "$tree/root/peak")" ] || echo "$now" >"$tree/root/peak"
  done
}
echo 0 >"$tree/root/peak"
watch_memory 2>/dev/null &
# Of the torch minors that a wheel is for, the one whose package is small.
inside TORCHES=2.13 sh -c "cd $source && bash /root/lines"
echo "lines test passed: $document, Debian $debian"
