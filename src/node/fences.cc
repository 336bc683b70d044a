// SPDX-License-Identifier: Apache-2.0
#include "node/fences.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fork.h"

namespace ccom {

bool AsymmetricFence::available() {
  static constinit MadeOnce<bool> registered;
  return registered.get([] { return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0; });
}

void AsymmetricFence::heavy() const {
  full_fence();
  if (asymmetric_) ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

}  // namespace ccom
