// SPDX-License-Identifier: Apache-2.0
//
// A test that looks into everything that a machine has, but must touch only what is its own: in namespaces where /tmp,
// /dev/shm and the network belong to it, and where every user can run what was built. For root.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "tests/harness/child.h"

namespace ccom {

// The users of such tests: one who runs the job, and one who has nothing to do with it.
inline constexpr uid_t kOwner = 60001;
inline constexpr uid_t kStranger = 65534;

// Moves this process into new namespaces; an empty string, or why that cannot be done here.
std::string isolate();

// Where a file of the build folder is seen by every user, after isolate().
std::string seen_by_all(const std::string& built);

// For children: becomes that user and group, without other groups, capabilities and inherited descriptors but the
// standard ones and `kept`.
void become(uid_t user, int kept = -1);

// Runs `work` in a child as that user; its exit code.
inline int run_as(uid_t user, const std::function<int()>& work) {
  return exit_of(
      [&] {
        become(user);
        return work();
      },
      3600);
}

}  // namespace ccom
