#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# image_test.sh SOURCE: the images of examples/clusters/Dockerfile, built by buildah from a Debian 12 that debootstrap
# has made, and what the manifests start in them: start-ranks with ccom-doctor and ccom-bench, torchrun with the
# example. Needs root, debootstrap and buildah (scripts/install-dependencies --image).
set -euo pipefail
command -v buildah >/dev/null || { echo "skipped: needs buildah (scripts/install-dependencies --image)"; exit 77; }
source=$(realpath "$1")
. "$(dirname "$0")/../install/debian_tree.sh"
in_own_namespaces "$@"

images=$(mktemp -d)
mount -t tmpfs none /run
driver=vfs
! grep -qw overlay /proc/filesystems || driver=overlay
build() { buildah --root "$images/root" --runroot "$images/run" --storage-driver $driver "$@"; }
make_tree ccache
remove() { remove_tree; rm -rf --one-file-system "$images"; }
trap remove EXIT

# What the manifests call debian:12, with this machine's settings for packages.
base=$(build from scratch)
tar -C "$tree" --one-file-system -c . >"$images/base.tar"
build add --quiet "$base" "$images/base.tar" / >/dev/null
for variable in "${tree_environment[@]}"; do build config --env "$variable" "$base"; done
build config --env CCACHE_DIR=/ccache "$base"
step build commit --rm "$base" debian:12
rm "$images/base.tar"

cache=$(ccache --get-config cache_dir 2>/dev/null || echo "$images/ccache")
mkdir -p "$cache" "$images/source"
(cd "$source" && git ls-files -z | tar -c --null -T - --ignore-failed-read) | tar -x -C "$images/source"
folders=()
for folder in $({ env | grep ^PIP_; cat /etc/pip.conf ~/.config/pip/pip.conf; } 2>/dev/null |
  grep -oE '(file://|[= ])/[^ ]+' |
  sed -E 's,^(file://|[= ]),,; s,/simple/?$,,' | sort -u); do
  [ ! -d "$folder" ] || folders+=(--volume "$folder:$folder:ro")
done
# SOURCE: paths are part of what ccache knows a file by.
for target in ccom torch; do
  step build build --isolation chroot --network host --pull-never --layers --volume "$cache:/ccache" "${folders[@]}" \
    --build-arg SOURCE="$source" --build-arg TORCH=torch==2.13.0+cpu --target $target --tag ccom-$target \
    --file "$images/source/examples/clusters/Dockerfile" "$images/source"
done
build images

# started IMAGE VARIABLES... COMMAND: as a pod would be
started() {
  local container code=0 options=()
  container=$(build from --pull-never "$1")
  shift
  while [[ $1 == *=* ]]; do options+=(--env "$1"); shift; done
  build run --isolation chroot --network host --env CCOM_SOCKET_IFNAME=lo "${options[@]}" "$container" "$@" || code=$?
  build rm "$container" >/dev/null
  return $code
}
pod=(CCOM_NRANKS=2 JOB_COMPLETION_INDEX=0 CCOM_URL=tcp://127.0.0.1:21731)
started ccom-ccom "${pod[@]}" sh -c \
  'start-ranks 2 ccom-doctor --no-speed && start-ranks 2 ccom-bench allreduce --begin 8 --end 64K -n 5' |
  tee "$images/log"
grep -q 'Verdict: ' "$images/log" && grep -q 'wrong values: 0 OK' "$images/log" || { echo "failed: the tools"; exit 1; }
started ccom-ccom sh -c 'for program in c++ gcc cmake; do ! command -v $program || exit 1; done' ||
  { echo "failed: the image has what it was built with"; exit 1; }
started ccom-ccom ccom-bench allreduce -np 2 --sizes 64K --transport ofi --hostid-split 2 --check every -n 5 |
  tee "$images/log"
grep -q 'wrong values: 0 OK' "$images/log" || { echo "failed: libfabric"; exit 1; }
started ccom-torch OMP_NUM_THREADS=1 sh -c \
  'python3 -c "import etcd" &&
    torchrun --local-addr 127.0.0.1 --nproc-per-node=2 /opt/ccom/examples/torch_ddp_digits.py' |
  tee "$images/log"
grep -q '2 ranks, ccom: .* test accuracy 0.9' "$images/log" || { echo "failed: torch"; exit 1; }
echo "image test passed"
