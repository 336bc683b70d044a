// SPDX-License-Identifier: Apache-2.0
//
// One row of the table: warm up, time, verify.
//
// Latency: a barrier before each call; a sample is the longest time over the ranks. Throughput: calls back to back, a
// sample is their time divided by their number. Overlap: as latency on a stream, and beside each call the same with a
// computation that takes about as long, and the computation alone. Verified calls get fresh data, which is never inside
// a timed span; barriers and figures travel over a communicator of their own, so that they disturb neither the times
// nor the byte counts.
#pragma once

#include <ccom/ccom.h>

#include <cstdint>
#include <vector>

#include "bench/buffers.h"
#include "bench/cases.h"
#include "bench/launch/session.h"
#include "bench/options.h"

namespace ccom::bench {

// What a rank measures with. References outlive the calls.
struct Rig {
  const Options& options;
  launch::Place place;
  ccomComm_t control = nullptr;
  ccomComm_t comm = nullptr;      // The one that is measured.
  ccomStream_t stream = nullptr;  // NULL: the NULL stream.
};

// The same on every rank.
struct Measurement {
  std::vector<double> seconds;
  std::vector<double> compute_seconds, both_seconds;  // With --overlap, else empty.
  uint64_t wrong = 0;
};

// Collective. The first wrong element of a rank is told on stderr.
launch::Outcome measure(const Rig& rig, const Case& what, const Buffers& buffers, Measurement* measurement);

}  // namespace ccom::bench
