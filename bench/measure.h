// SPDX-License-Identifier: Apache-2.0
//
// One row of the table: warm up, time, verify.
//
// Latency: a barrier before each call; a sample is the maximum time over the ranks. Throughput: calls back to back; a
// sample is their time divided by their number. Overlap: as latency on a stream, plus each call together with a
// computation of about the same length, plus the computation alone. Verified calls get fresh data, which is never
// inside a timed section; barriers and figures use a separate communicator, so they affect neither the times nor the
// byte counts.
#pragma once

#include <ccom/ccom.h>

#include <cstdint>
#include <vector>

#include "bench/buffers.h"
#include "bench/cases.h"
#include "bench/launch/session.h"
#include "bench/options.h"

namespace ccom::bench {

// What a rank measures with. References must outlive the calls.
struct Rig {
  const Options& options;
  launch::Place place;
  ccomComm_t control = nullptr;
  ccomComm_t comm = nullptr;      // The one being measured.
  ccomStream_t stream = nullptr;  // NULL: the NULL stream.
};

// Equal on every rank.
struct Measurement {
  std::vector<double> seconds;
  std::vector<double> compute_seconds, both_seconds;  // With --overlap, else empty.
  uint64_t wrong = 0;
};

// Collective. The first wrong element of a rank is reported on stderr.
launch::Outcome measure(const Rig& rig, const Case& what, const Buffers& buffers, Measurement* measurement);

}  // namespace ccom::bench
