# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
#   unshare --user --map-root-user --mount sh -e with_qemu.sh COMMAND...
# Runs the command where the kernel gives arm64 programs to qemu, those too that it starts. From Linux 6.7 on a user
# namespace can ask for that alone; before, a system-wide handler is needed (Debian's qemu-user-static). QEMU names the
# emulator.
handler='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
handler=$handler':\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' ":ccom-arm64:M::$handler:${QEMU:-$(command -v qemu-aarch64)}:F" >/proc/sys/fs/binfmt_misc/register
exec "$@"
