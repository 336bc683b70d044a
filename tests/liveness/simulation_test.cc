// SPDX-License-Identifier: Apache-2.0
//
// Deterministic simulation of failure detection and agreement: random histories of a job (simulation.h).
//
// Disturbances that must be forgiven: pauses, slow connections, cuts that heal in time, clocks that jump and drift.
// Faults: deaths, stops, cuts, resets, aborts, ranks that make another call; up to four, some at once, with
// disturbances between them. Told beside errors: departures, and who is behind in its calls. Promises: a job without a
// fault has no error; after a fault every survivor has one, within a bounded time, which names only ranks that the
// faults concern; one fault is one set of ranks on all survivors, and several are less than twice as many sets; the
// first departure and the ranks that are behind are known everywhere; whoever resumes learns that it is out; leaving is
// no fault.
//
// CCOM_TEST_SEEDS=N runs N seeds (CCOM_TEST_LONG=1: a million) over all cores. CCOM_TEST_SEED=S begins with S:
// with CCOM_TEST_SEEDS=1 it repeats a failure.
#include "simulation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "node_simulation.h"
#include "tests/harness/effort.h"
#include "trees_simulation.h"

namespace ccom {
namespace {

void run_seeds(History (*simulate)(uint64_t)) {
  const uint64_t first = test_seed();
  const uint64_t count = count_from("CCOM_TEST_SEEDS", 4'000, 1'000'000);
  std::atomic<uint64_t> next = 0, failures = 0;
  std::mutex mutex;
  const auto work = [&] {
    for (uint64_t i; (i = next.fetch_add(1)) < count && failures < 10;) {
      const History history = simulate(first + i);
      if (history.broken.empty()) continue;
      ++failures;
      const std::lock_guard lock(mutex);
      ADD_FAILURE() << "CCOM_TEST_SEED=" << first + i << " CCOM_TEST_SEEDS=1 repeats it: " << history.broken << "\n"
                    << history.events;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  testing::Test::RecordProperty("seeds", std::to_string(count));
}

TEST(Simulation, NoWrongVictimNoHangEqualSets) { run_seeds(simulate); }
TEST(Simulation, OfTheRanksOfAHostHasNoWrongVictimAndNoHang) {
  set_log_function([](LogLevel, const char*, void*) {}, nullptr);  // a line for every suspicion
  run_seeds(simulate_node);
  set_log_function(nullptr, nullptr);
}

TEST(Simulation, OfDeathsOnHostsOfSeveralRanksHasOneErrorOnAll) { run_seeds(simulate_trees); }

TEST(Simulation, ASeedRepeatsItself) {
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(simulate(seed).events, simulate(seed).events);
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(simulate_node(seed).events, simulate_node(seed).events);
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(simulate_trees(seed).events, simulate_trees(seed).events);
}

}  // namespace
}  // namespace ccom
