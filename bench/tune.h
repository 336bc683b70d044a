// SPDX-License-Identifier: Apache-2.0
//
// ccom-bench --tune: speeds of this machine, for CCOM_TUNING.
#pragma once

#include <optional>
#include <string>

#include "bench/launch/session.h"
#include "bench/options.h"
#include "bench/tune_memory.h"

namespace ccom::bench {

// Cost of a message of m bytes: latency_ns + m / bytes_per_second.
struct Speed {
  double latency_ns = 0;
  double bytes_per_second = 0;
};

// What was not measured is not set.
struct Speeds {
  std::optional<Speed> memory{};   // Between two ranks of a host through shared memory.
  std::optional<Speed> network{};  // Between two hosts, or between two ranks of one where sockets are forced.
  CostFigures network_costs{};     // Of messages between hosts, besides.
  std::optional<double> post_ns{};
  std::optional<double> reduce_bytes_per_second{};
  CostFigures memory_costs{};  // Of work in memory that ranks of a host share.
  std::string measured_on{};
};
std::string to_json(const Speeds& speeds);  // Readable; ends with a line feed.

// Bytes per second; nullopt where that is no rate that a tuning file may hold: the times on a busy machine are such
// that the longer work sometimes takes no longer.
std::optional<double> rate_of(size_t size_bytes, double seconds);

// From the times of a short message and of a long one; nullopt as in rate_of.
std::optional<Speed> speed_of(double short_seconds, double long_seconds, size_t long_bytes);

// Collective over the ranks of `control`. Rank 0 writes options.tune and says on stdout what it found.
launch::Outcome tune(const Options& options, launch::Place place, ccomComm_t control);

}  // namespace ccom::bench
