// SPDX-License-Identifier: Apache-2.0
//
// Looks at the jobs of a user, from outside: the directories of all processes of the user below /proc, and the boards
// that they name. Needs no process of this host to answer, so it tells of stopped ones too.
//
// Reads only, but for one word of boards of communicators with several hosts: it asks these what their ranks do. The
// answers come over the job's own network into the board, and are seen by this look or the next one.
//
// Whatever is found is untrusted: any process of the user may have made it, and it may change while it is read.
#pragma once

#include <sys/types.h>

#include "tools/jobs/seen.h"

namespace ccom {

struct LookWishes {
  bool waits_for_hosts = false;   // until all other hosts have answered, 300 ms at most
  bool with_source_lines = true;  // of call sites, from debug information
};

// Asks other hosts for so long: looks that follow each other faster find answers of the one before.
inline constexpr double kWatchSeconds = 2.5;

// Processes of other users are left alone, also by root.
HostSeen look_at_host(uid_t user, const LookWishes& wishes);

}  // namespace ccom
