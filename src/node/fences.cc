// SPDX-License-Identifier: Apache-2.0
#include "node/fences.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ccom {

bool AsymmetricFence::available() {
  static const bool registered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return registered;
}

void AsymmetricFence::heavy() const {
  full_fence();
  if (asymmetric_) ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

}  // namespace ccom
