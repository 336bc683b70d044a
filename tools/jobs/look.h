// SPDX-License-Identifier: Apache-2.0
//
// Looks at the jobs of a user on this host, from outside: the directories of all processes of the user below /proc, and
// the boards that they name. Reads only; needs no process to answer, so it tells of stopped ones too.
//
// Whatever is found is untrusted: any process of the user may have made it, and it may change while it is read.
#pragma once

#include <sys/types.h>

#include "tools/jobs/seen.h"

namespace ccom {

struct LookWishes {
  bool with_links = false;        // asks the kernel for the state of the processes' TCP connections
  bool with_source_lines = true;  // of call sites, from debug information
};

// Processes of other users are left alone, also by root.
HostSeen look_at_host(uid_t user, const LookWishes& wishes);

}  // namespace ccom
