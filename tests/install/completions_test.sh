#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   completions_test.sh PREFIX SHELL...
# What the shells offer for the programs installed in PREFIX, by their own machinery: bash by the function that it has
# for a command, zsh by the Tab key in a terminal, fish by `complete -C`. Shells that are not installed are an error.
set -euo pipefail
prefix=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME=$folder  # fish keeps a history
touch 'measured speeds.json'

# offers_SHELL WORDS...: what is offered for the last of these words, one a line.
offers_bash() {
  bash --norc --noprofile -c '
    . "$0/share/bash-completion/completions/$1"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    function=$(complete -p "$1" | sed "s/.*-F \([^ ]*\) .*/\1/")
    $function "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    [ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' "$prefix" "$@"
}

# fish 4 adds what has the letters in that order somewhere.
offers_fish() {
  fish --no-config -c "source $prefix/share/fish/vendor_completions.d/$1.fish; complete -C '$*'" | cut -f 1 |
    awk -v typed="${!#}" 'index($0, typed) == 1'
}

# Each match that is added goes to a file, until the shell has nothing more to ask.
cat >capture.zsh <<'Z'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd \"\$@\"; return; fi
  local -a hits
  builtin compadd -A hits \"\$@\"
  print -rl -- \$hits >>offered
  builtin compadd \"\$@\"
}
finish() { : >finished }
comppostfuncs=(finish)
bindkey '^I' complete-word
: >ready"
until [[ -e ready ]]; do sleep 0.05; done
zpty -w -n shell "$2"$'\t'
until [[ -e finished ]]; do sleep 0.05; done
zpty -d shell
Z
offers_zsh() {
  rm -f offered ready finished
  touch offered
  timeout 20 zsh -f capture.zsh "$(zsh_folder)" "$*"
  cat offered
}
zsh_folder() { dirname "$(find "$prefix/share/zsh" -name _ccom-bench)"; }

failures=0
# expect SHELL WHAT WORDS...: exactly WHAT is offered, in any order.
expect() {
  local shell=$1 wanted offered
  wanted=$(tr ' ' '\n' <<<"$2" | sort)
  shift 2
  offered=$("offers_$shell" "$@" | grep . | sort -u)
  [ "$offered" = "$wanted" ] && return
  printf '%s, "%s": offered:\n%s\nexpected:\n%s\n' "$shell" "$*" "$offered" "$wanted"
  failures=$((failures + 1))
}

for shell; do
  echo "$shell $("$shell" --version | grep -o '[0-9][0-9.]*' | head -n 1)"
  expect "$shell" 'all allgather allgatherv allreduce alltoall alltoallv' ccom-bench al
  expect "$shell" '--mode' ccom-bench allreduce --mod
  expect "$shell" 'latency throughput' ccom-bench --mode ''
  expect "$shell" 'float8e4m3 float8e5m2' ccom-bench -d float8
  expect "$shell" 'trn1.2xlarge trn1.32xlarge' ccom-topo trn1.
  expect "$shell" 'reduce reduce_scatter' ccom-sim -b 8 2x red
  expect "$shell" '--tensorboard' ccom-trace --t
  expect "$shell" '--timeout' ccom-doctor --t
  case $shell in
    zsh) expect zsh 'allgather allgatherv' ccom-bench allreduce,allg ;;
    *) expect "$shell" 'allreduce,allgather allreduce,allgatherv' ccom-bench allreduce,allg ;;
  esac
  "offers_$shell" ccom-bench --json meas | grep -qx 'measured.*speeds\.json' ||
    { echo "$shell offers no file"; failures=$((failures + 1)); }
  for program in "$prefix"/bin/ccom-*; do
    options=$("$program" --help | grep -o '^  \(-., \)\?--[a-z-]*' | grep -o -- '--[a-z-]*' | tr '\n' ' ')
    expect "$shell" "${options% }" "$(basename "$program")" --
  done
done
expect bash 'latency' ccom-bench --mode = lat  # as bash divides --mode=lat
[ $failures = 0 ] || exit 1
echo "completions test passed"
