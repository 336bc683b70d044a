// SPDX-License-Identifier: Apache-2.0
#include "bench/small_calls.h"

#include <ccom/ccom.h>

#include <algorithm>

#include "bench/cores.h"
#include "bench/launch/session.h"
#include "bench/memory_probes.h"
#include "bench/statistics.h"

namespace ccom::bench {
namespace {

using launch::Outcome;
using launch::outcome_of;
using launch::Place;

constexpr int kBatch = 50;
constexpr size_t kLeastBatches = 10, kMostBatches = 200;

// The median of rank 0's times of batches. All ranks make as many as rank 0 has time for.
template <class Call>
Outcome time_calls(Place place, ccomComm_t comm, Call call, double* call_ns) {
  std::vector<double> samples;
  const ProbeClock::time_point start = ProbeClock::now();
  for (uint8_t goes_on = 1; goes_on != 0;) {
    const ProbeClock::time_point begin = ProbeClock::now();
    for (int i = 0; i < kBatch; ++i) CCOM_LAUNCH_TRY(outcome_of(call(), comm, "small call"));
    samples.push_back(ns_since(begin) / kBatch);
    goes_on = samples.size() < kLeastBatches || (samples.size() < kMostBatches && ns_since(start) < kProbeBudgetNs);
    CCOM_LAUNCH_TRY(outcome_of(ccomBroadcast(&goes_on, &goes_on, 1, ccomUint8, 0, comm, nullptr), comm, "agree"));
  }
  std::ranges::sort(samples);
  if (place.rank == 0) *call_ns = percentile(samples, 0.5);
  return {};
}

}  // namespace

Outcome time_small_allreduce(int ranks, const std::vector<int>& cores, double* ns) {
  const Pinned pinned(cores);  // Threads that are started in here too.
  launch::SessionConfig config;
  config.common.commName = "small calls";
  return launch::run_as_threads(ranks, config, [&](Place place, ccomComm_t comm) {
    const Pinned to_one({cores[static_cast<size_t>(place.rank) % cores.size()]});
    double value = 0;
    const auto call = [&] { return ccomAllReduce(&value, &value, 1, ccomFloat64, ccomSum, comm, nullptr); };
    return time_calls(place, comm, call, ns);
  });
}

}  // namespace ccom::bench
