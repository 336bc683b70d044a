#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Uses the installed packages as their users do; for debian_test.sh, inside the Debian that it makes. Leaves no file
# behind.
set -euxo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# The example as two ranks, which end with an error if their sum is wrong.
example=/usr/share/doc/libccom-dev/examples/01_allreduce_c/allreduce.c
two_ranks() {
  rm -f meet
  CCOM_NRANKS=2 CCOM_URL=file://$folder/meet CCOM_RANK=1 timeout 60 "$@" >second &
  CCOM_NRANKS=2 CCOM_URL=file://$folder/meet CCOM_RANK=0 timeout 60 "$@" >first
  wait $!
  cat first
}
read -ra flags < <(pkg-config --cflags --libs ccom)
cc -std=c99 -Wall -Wextra -pedantic -Werror "$example" -o by_pkg_config "${flags[@]}"
two_ranks ./by_pkg_config | grep -x 'rank 0 of 2: sum 3, expected 3'
# There is no static library, and nothing pretends that there were.
[ "$(pkg-config --static --libs-only-l ccom | tr -d ' ')" = -lccom ]

printf '%s\n' 'cmake_minimum_required(VERSION 3.24)' 'project(user C)' \
  'find_package(ccom 0.9 REQUIRED COMPONENTS ${WANTED})' \
  "add_executable(by_cmake $example)" 'target_link_libraries(by_cmake PRIVATE ccom::ccom)' >CMakeLists.txt
cmake -G Ninja -S . -B made
cmake --build made
two_ranks made/by_cmake | grep -x 'rank 0 of 2: sum 3, expected 3'
if cmake -G Ninja -S . -B static -DWANTED=static 2>refused; then exit 1; fi
grep 'installed without its static library' refused

ccom-bench allreduce -np 4 --sizes 8,64K,1M --check every
ccom-doctor --no-speed
ccom-topo trn1.32xlarge --svg - | grep -c '<svg'
ccom-sim '2*trn1.32xlarge' allreduce -b 1M
ccom-run -n 3 sh -c 'echo $CCOM_RANK of $CCOM_NRANKS' | sort | tail -n 1 | grep -x '2 of 3'
ccom-status || [ $? = 4 ]
ccom-top --once -i 0.1 | grep "no communicators"
mapfile -t programs < <(dpkg -L ccom-tools | sed -n 's,^/usr/bin/,,p')
[ ${#programs[@]} = 8 ]
for program in "${programs[@]}"; do
  "$program" --version | grep "^$program $(dpkg-query -W -f '${Version}' ccom-tools)\$"
  [ -z "$(man --warnings "$program" 2>&1 >page)" ]
  grep EXAMPLES page
  bash -c ". /usr/share/bash-completion/bash_completion; _completion_loader $program; complete -p $program" |
    grep -- '-F _ccom_'
done
bash /root/packages/completions_test.sh /usr bash zsh fish

python3 -c 'import ccom; print(".".join(map(str, ccom.version())))' |
  grep -x "$(dpkg-query -W -f '${Version}' python3-ccom)"
if python3 -c 'import ccom; ccom.init()' 2>refused; then exit 1; fi
grep "no extension for this Python (Debian's python3-ccom has none)" refused
