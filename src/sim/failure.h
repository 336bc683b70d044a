// SPDX-License-Identifier: Apache-2.0
//
// Who learns of a death, and when: the control tree of production (liveness/state.h) on the simulator's clock.
#pragma once

#include <string>
#include <vector>

#include "sim/simulator.h"

namespace ccom {

// Model input: how long the kernel takes to tell that a process is gone. Measured on Linux: a robust mutex under 5 ms,
// the end of a connection up to 40 ms per GiB that the process held.
struct DeathNotice {
  double to_mates_ns = 5e6;         // to another process of the host
  double to_connections_ns = 50e6;  // to the other end of its connections
  int64_t dead_ns = 3'000'000'000;  // CCOM_DEAD_MS
};

struct HostNotice {
  double time_ns = -1;  // when the host's ranks have the error; negative: never
  Status error;         // the same on every host, and it names the dead rank
};

// By host. A dead rank's own host learns of it through its other ranks, if it has any.
std::vector<HostNotice> survive(const Topology& topology, const Faults::Death& death, const DeathNotice& notice = {});

// "rank 5 dies at 100 us; 3 ranks had finished; 60 survivors on 4 hosts learn of it after 5.0 to 5.1 ms: <error>"
std::string to_text(const Topology& topology, const Faults::Death& death, const std::vector<HostNotice>& notices,
                    const SimReport& report);

}  // namespace ccom
