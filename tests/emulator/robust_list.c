// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into programs that run in qemu-user, which does not have set_robust_list(2) (ENOSYS): says that the kernel
// has taken the list. Ranks that die are then noticed by their silence, not at once. scripts/build-arm64
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...) {
  long argument[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_set_robust_list) return 0;
  static long (*next)(long, ...);
  if (!next) next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
