// SPDX-License-Identifier: Apache-2.0
//
// Recorded calls on the simulator: gaps are kept, calls take what the simulator says, and questions of what if give
// what they must.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/trace/recordings.h"
#include "tools/sim/replay.h"
#include "tools/sim/replay_text.h"

namespace ccom::simtool {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

// Of `calls` allreduces of so many floats; each rank comes gap_ns after the last one has ended, rank 1 late_ns later
// still.
std::vector<Recording> recordings(int nranks, uint64_t calls, int64_t gap_ns, int64_t late_ns, uint64_t count) {
  std::vector<Recording> files = recordings_of(nranks, nranks);
  int64_t now = 1'000'000;
  for (uint64_t number = 1; number <= calls; ++number) {
    const int64_t begin = now + gap_ns, end = begin + late_ns + 100'000;
    for (Rank rank = 0; rank < nranks; ++rank)
      add_call(files[static_cast<size_t>(rank)], number, begin + (rank == 1 ? late_ns : 0), end, count);
    now = end;
  }
  return files;
}

Replay replay_of_all(std::vector<Recording> files, int nranks) {
  static std::vector<RecordedJob> kept;  // calls refer to it
  kept.push_back(job_of(std::move(files)));
  auto replay = replay_of(kept.back(), nranks);
  EXPECT_TRUE(replay) << replay.error().message();
  return *std::move(replay);
}

Replayed run(const Replay& replay, const std::string& machine, const std::string& algorithm = "") {
  auto result = run_replay(replay, {*make_topology(machine), algorithm});
  EXPECT_TRUE(result) << result.error().message();
  return *std::move(result);
}

TEST(Replay, KeepsGapsAndTakesTheSimulatorsTimes) {
  const Replay replay = replay_of_all(recordings(2, 10, 1'000'000, 0, kMiB), 2);
  ASSERT_EQ(replay.calls.size(), 10u);
  const Replayed result = run(replay, "host:2");
  ASSERT_EQ(result.kinds.size(), 1u);
  const double call_ns = result.kinds[0].predicted_ns;
  EXPECT_GT(call_ns, 0);
  EXPECT_EQ(result.kinds[0].bytes, 4 * kMiB);
  EXPECT_NEAR(result.whole_ns, 10 * call_ns + 9e6, 1);  // the first call begins at once
  EXPECT_NEAR(result.in_calls_ns, 10 * call_ns, 1);
  EXPECT_NEAR(result.median_ratio, call_ns / 100'000, 1e-9);
}

TEST(Replay, SaysWhatStragglersCost) {
  const Replay replay = replay_of_all(recordings(3, 10, 1'000'000, 300'000, 1000), 3);
  const Replayed with = run(replay, "host:3"), without = run(without_stragglers(replay), "host:3");
  // Who waits has done its first part of the call meanwhile.
  EXPECT_LE(with.whole_ns - without.whole_ns, 10 * 300'000);
  EXPECT_GT(with.whole_ns - without.whole_ns, 10 * 299'000);
  EXPECT_NEAR(with.waiting_ns, 10 * 300'000 * 2 / 3.0, 1);
  EXPECT_NEAR(without.waiting_ns, 0, 1);
}

TEST(Replay, RunsOnOtherNumbersOfRanks) {
  const Replay replay = replay_of_all(recordings(2, 5, 1'000'000, 0, kMiB), 8);
  EXPECT_EQ(replay.processes, 8u);
  EXPECT_GT(run(replay, "2*host:4").whole_ns, 4e6);
}

TEST(Replay, FasterLinksAndOtherAlgorithmsChangeCallsAlone) {
  const Replay replay = replay_of_all(recordings(2, 5, 1'000'000, 0, 16 * kMiB), 2);
  ReplayMachine machine{*make_topology("2*host:1"), ""};
  const Replayed slow = *run_replay(replay, machine);
  speed_up(machine, 2);
  const Replayed fast = *run_replay(replay, machine);
  EXPECT_NEAR(fast.kinds[0].predicted_ns / slow.kinds[0].predicted_ns, 0.5, 0.1);
  EXPECT_NEAR(slow.whole_ns - slow.in_calls_ns, fast.whole_ns - fast.in_calls_ns, 1);
  EXPECT_EQ(run(replay, "2*host:1", "ring").kinds[0].algorithm, "ring");
}

// Of calls of 2 ranks that come at once, 20 of each kind, which take what the model says with these costs, but for each
// tenth one, which takes a hundred times as long.
std::vector<Recording> recordings_as_by(const Topology& topology, const NodeCosts& costs) {
  std::vector<Recording> files = recordings_of(2, 2);
  std::vector<std::pair<uint64_t, uint64_t>> kinds;
  for (const Collective collective : {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter})
    for (uint64_t count = 1 << 11; count <= kMiB; count *= 8)
      kinds.emplace_back(kind_of(collective, DataType::Float32, ReduceOp::Sum, false, -1), count);
  int64_t now = 0;
  uint64_t number = 0;
  for (const auto& [kind, count] : kinds) {
    std::vector<Recording> one = recordings_of(2, 2);
    for (Recording& file : one) add_call(file, 1, 0, 1000, count, kind);
    ReplayMachine machine{topology, ""};
    machine.node_costs = costs;
    const auto ns = static_cast<int64_t>(run_replay(replay_of_all(std::move(one), 2), machine)->whole_ns);
    for (int i = 0; i < 20; ++i) {
      const int64_t end = now + 10'000 + (i % 10 == 9 ? 100 : 1) * ns;
      ++number;
      for (Recording& file : files) add_call(file, number, now + 10'000, end, count, kind);
      now = end;
    }
  }
  return files;
}

TEST(Fit, FindsTheCostsThatCallsHadAndLeavesDisturbedOnesOut) {
  ReplayMachine machine{*make_topology("host:2"), ""};
  machine.is_recorded = true;
  NodeCosts slow{machine.topology.memory_costs, {}};
  slow.memory.shared_load_ns *= 2;
  slow.memory.shared_store_ns *= 2;
  slow.memory.far_load_ns *= 3;
  slow.memory.far_store_ns *= 3;
  slow.memory.line_ns *= 1.5;
  const Replay replay = replay_of_all(recordings_as_by(machine.topology, slow), 2);
  const Replayed before = *run_replay(replay, machine);
  EXPECT_LT(before.calls_ratio(), 0.8);
  ASSERT_TRUE(fit_costs(replay, machine).is_ok());
  const Replayed after = *run_replay(replay, machine);
  EXPECT_NEAR(after.median_ratio, 1, 0.1);
  EXPECT_NEAR(after.calls_ratio(), 1, 0.1);
  EXPECT_EQ(after.disturbed_calls, replay.calls.size() / 10);
  for (const ReplayedKind& kind : after.kinds)
    EXPECT_NEAR(kind.predicted_ns / kind.recorded_ns, 1, 0.35) << name_of(kind.collective) << " " << kind.bytes;
  ASSERT_TRUE(machine.fit);
  EXPECT_LT(machine.fit->error_elsewhere, 2);
}

TEST(Replay, CallsRunInTheWayInWhichTheyWereRecorded) {
  std::vector<Recording> files = recordings(2, 4, 1000, 0, kMiB);
  for (Recording& file : files) {
    file.texts.push_back("node: one_shot, mapped two_shot; private");
    for (RecordedCall& call : file.calls) call.algorithm = static_cast<uint32_t>(file.texts.size() - 1);
  }
  const Replay replay = replay_of_all(std::move(files), 2);
  ReplayMachine machine{*make_topology("host:2"), ""};
  machine.measured = MeasuredCosts{};
  const Replayed free = *run_replay(replay, machine);
  machine.is_recorded = true;
  const Replayed recorded = *run_replay(replay, machine);
  EXPECT_EQ(recorded.kinds[0].algorithm, "node: one_shot, mapped two_shot");
  EXPECT_EQ(free.kinds[0].algorithm, "node");
  EXPECT_GT(recorded.kinds[0].predicted_ns, free.kinds[0].predicted_ns);
}

TEST(Buckets, CutTheSameBytesAnew) {
  const Replay replay = replay_of_all(recordings(2, 10, 1000, 0, kMiB), 2);
  const Replay larger = with_buckets(replay, 16 * kMiB), smaller = with_buckets(replay, 2 * kMiB);
  std::vector<uint64_t> counts;
  for (const ReplayCall& call : larger.calls) counts.push_back(call.call.count);
  EXPECT_THAT(counts, ElementsAre(4 * kMiB, 4 * kMiB, 2 * kMiB));
  EXPECT_NEAR(larger.calls[1].parts[0].gap_ns, 4000, 1);
  EXPECT_EQ(smaller.calls.size(), 20u);
  EXPECT_NEAR(smaller.calls[1].parts[0].gap_ns, 0, 1e-9);  // was there with the first half
  for (size_t i = 1; i < smaller.calls.size(); ++i) {
    EXPECT_EQ(smaller.calls[i].follows, static_cast<int64_t>(i) - 1);
    EXPECT_THAT(smaller.calls[i].parts, Each(Field(&ReplayCall::Part::after, static_cast<int64_t>(i) - 1)));
  }
}

TEST(Buckets, DoNotMixSteps) {
  std::vector<Recording> files = recordings_of(2, 2);
  int64_t now = 0;
  for (uint64_t number = 1; number <= 12; ++number) {
    now += number % 4 == 1 ? 10'000'000 : 1000;  // four gradients a step
    for (Recording& file : files) add_call(file, number, now, now + 500, kMiB);
    now += 500;
  }
  const Replay buckets = with_buckets(replay_of_all(std::move(files), 2), 64 * kMiB);
  std::vector<uint64_t> counts;
  for (const ReplayCall& call : buckets.calls) counts.push_back(call.call.count);
  EXPECT_THAT(counts, ElementsAre(4 * kMiB, 4 * kMiB, 4 * kMiB));
}

TEST(Replay, WithoutTheFilesOfAllRanksIsRefused) {
  std::vector<Recording> files = recordings(3, 2, 1000, 0, 10);
  files.pop_back();
  const RecordedJob job = job_of(std::move(files));
  const auto replay = replay_of(job, 3);
  ASSERT_FALSE(replay);
  EXPECT_THAT(replay.error().message(), HasSubstr("2 of 3 ranks"));
}

TEST(Replay, ReportsInTextAndJson) {
  ReplayReport report;
  report.what = "host:2";
  report.replay = replay_of_all(recordings(2, 3, 1000, 0, kMiB), 2);
  report.replayed = run(report.replay, "host:2");
  report.without_stragglers = report.replayed;
  EXPECT_THAT(to_text(report), HasSubstr("3 calls of 2 ranks on host:2"));
  const auto object = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(object["calls"], 3);
  EXPECT_EQ(object["kinds"][0]["collective"], "allreduce");
  EXPECT_NEAR(object["stragglers_cost_s"].get<double>(), 0, 1e-12);
}

}  // namespace
}  // namespace ccom::simtool
