#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that a launcher has started find each other and get the right sum, with no variable of ccom's but a secret.
# Launchers that are not installed here (Kubernetes, Kubeflow Trainer, SageMaker) are played: processes get the
# variables that their documentation names, on two hosts of which both are this machine.
#   start_test.sh LAUNCHER ALLREDUCE_C
# Exit 77 (skipped) if the launcher is not here.
set -u
launcher=$1
program=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export CCOM_INIT_TIMEOUT_MS=40000 CCOM_SOCKET_IFNAME=lo
unset CCOM_URL CCOM_RANK CCOM_NRANKS

# find_program NAME FILE...: the first that can be run, or the test is skipped
find_program() {
  name=$1
  shift
  for found in "$@"; do
    found=$(command -v "$found" 2>/dev/null) && return
  done
  echo "skipped: $name is not installed here"
  exit 77
}

# rank NUMBER NAME=VALUE...: one process in the background, its output in a file of its own
pids=
rank() {
  file=$folder/$1
  shift
  env "$@" timeout 60 "$program" >"$file" 2>&1 &
  pids="$pids $!"
}
await_ranks() {
  code=0
  for pid in $pids; do wait "$pid" || code=$?; done
  cat "$folder"/[0-9]*
  return $code
}

case $launcher in
  openmpi)
    find_program "Open MPI" mpirun.openmpi
    as_root=
    [ "$(id -u)" = 0 ] && as_root=--allow-run-as-root
    timeout 60 "$found" $as_root --oversubscribe -np 4 "$program" >"$folder/0" 2>&1
    ;;
  mpich)
    find_program MPICH mpirun.mpich
    timeout 60 "$found" -np 4 "$program" >"$folder/0" 2>&1
    ;;
  intelmpi)
    find_program "Intel MPI" "${CCOM_TEST_INTELMPI:-none}" "$root/build/peers/intelmpi/bin/mpiexec.hydra"
    timeout 60 "$found" -np 4 "$program" >"$folder/0" 2>&1
    ;;
  torchrun)
    find_program torchrun "$root/build/torch/bin/torchrun" "${CCOM_TEST_TORCHRUN:-torchrun}"
    timeout 100 "$found" --standalone --nproc-per-node 4 --no-python "$program" >"$folder/0" 2>&1
    ;;
  kubernetes)  # The manifest names the rendezvous address; here a file does.
    export CCOM_NRANKS=4 CCOM_LOCAL_NRANKS=2 CCOM_URL="file://$folder/id"
    for i in 0 1 2 3; do
      rank $i JOB_COMPLETION_INDEX=$((i / 2)) CCOM_LOCAL_RANK=$((i % 2)) CCOM_HOSTID=pod$((i / 2))
    done
    await_ranks
    ;;
  kubeflow)
    export PET_NNODES=2 PET_NPROC_PER_NODE=2 PET_MASTER_ADDR=localhost PET_MASTER_PORT=$((20000 + $$ % 40000))
    for i in 0 1 2 3; do
      rank $i PET_NODE_RANK=$((i / 2)) CCOM_LOCAL_RANK=$((i % 2)) CCOM_HOSTID=node$((i / 2))
    done
    await_ranks
    ;;
  sagemaker)  # localhost stands for the first container, whose name leads to it.
    export SM_HOSTS='["localhost","algo-2"]' SM_NETWORK_INTERFACE_NAME=lo CCOM_LOCAL_NRANKS=2 \
      CCOM_URL="file://$folder/id"
    unset CCOM_SOCKET_IFNAME
    for i in 0 1 2 3; do
      host=localhost
      [ $i -ge 2 ] && host=algo-2
      rank $i SM_CURRENT_HOST=$host CCOM_LOCAL_RANK=$((i % 2)) CCOM_HOSTID=$host
    done
    await_ranks
    ;;
esac
code=$?
cat "$folder/0"
# Lines of several ranks may have come as one.
[ "$(cat "$folder"/[0-9]* | grep -o 'of 4: sum 10, expected 10' | wc -l)" = 4 ] || code=1
exit $code
