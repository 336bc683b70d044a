// SPDX-License-Identifier: Apache-2.0
//
// What the kernel knows of the TCP connections of processes (sock_diag(7)): also of those that transports and control
// trees of a job have, so the job itself need not measure.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/jobs/seen.h"

namespace ccom {

struct ProcessSockets {
  int32_t pid = 0;
  std::vector<Rank> ranks{};        // of the process
  std::vector<uint64_t> sockets{};  // inodes
};

// By process and address. Only sockets of this network namespace are known; empty where the kernel tells nothing.
std::vector<LinkSeen> links_of(const std::vector<ProcessSockets>& processes);

}  // namespace ccom
