// SPDX-License-Identifier: Apache-2.0
//
// CCOM_EMULATE_SCALE between processes: messages take as long as the fabric would, slowed down; what cannot be imitated
// is refused with a cure; and errors are what they are without it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int kAttempts = 30;  // others use the processors too; mostly the first is right

Job::Environment emulated(const std::string& topology, const std::string& scale) {
  return {{"CCOM_TOPOLOGY", topology}, {"CCOM_EMULATE_SCALE", scale}};
}

// Milliseconds that rank 0 measured; 0 if it failed.
double took_ms(int nranks, const Job::Environment& environment, size_t bytes, const std::string& pairs) {
  Job job("rank_program", nranks, {"timed", std::to_string(bytes), pairs}, [&](int) { return environment; });
  EXPECT_TRUE(job.wait_for("took", first_ranks(nranks), milliseconds(60000))) << job.transcript();
  EXPECT_TRUE(job.finish(milliseconds(10000)));
  const std::string line = job.line(0, "took");
  return line.empty() ? 0 : std::atof(line.c_str() + 5) / 1000;
}

// A link of a generic shape: 50 GB/s and 1.5 us, 0.1 us to start a message.
double model_ms(size_t bytes, double scale) { return (static_cast<double>(bytes) / 50e9 + 1.6e-6) * 1e3 / scale; }

// A pair's messages there and back take as long as the model says, or up to `most` times that, in one of the attempts.
// Against the model, on times that are long beside the turns of a loaded processor: the ratio of two measured times is
// wrong as soon as the short one was never undisturbed.
void expect_near(double model, double most, int nranks, const Job::Environment& environment, size_t bytes,
                 const std::string& pair) {
  double best = 1e9;
  for (int attempt = 0; attempt < kAttempts && best > most * model; ++attempt) {
    best = std::min(best, took_ms(nranks, environment, bytes, pair));
  }
  EXPECT_GE(best, 0.95 * model) << pair;
  EXPECT_LE(best, most * model) << pair;
}

TEST(Emulation, AMessageTakesItsTimeOnTheLink) {
  constexpr size_t kBytes = size_t{1} << 20;
  expect_near(2 * model_ms(kBytes, 1e-3), 1.1, 2, emulated("torus:1x2", "1e-3"), kBytes, "0-1");
}

TEST(Emulation, AScaleStretchesTime) {
  expect_near(2 * model_ms(8, 1e-4), 1.1, 2, emulated("ring:2", "1e-4"), 8, "0-1");
}

// Ranks 0 and 1 are the cores of one device, 2 and 3 those of its neighbour; there is one link between them.
TEST(Emulation, TwoSendersOfADeviceShareItsLink) {
  const Job::Environment trn1 = emulated("trn1.32xlarge", "1e-3");
  // Of a loaded machine's turns one sender may begin when the other has ended: each pair of runs counts by itself.
  double ratio = 0;
  for (int attempt = 0; attempt < kAttempts && !(ratio > 1.8 && ratio < 2.1); ++attempt) {
    const double alone = took_ms(4, trn1, size_t{4} << 20, "0-2,9-9");
    ratio = took_ms(4, trn1, size_t{4} << 20, "0-2,1-3") / alone;
  }
  EXPECT_GT(ratio, 1.8);
  EXPECT_LT(ratio, 2.1);
}

TEST(Emulation, MessagesGoThroughOtherDevicesWhereTheFabricIsRouted) {
  for (const auto& [pair, hops] : {std::pair{"0-1", 1}, std::pair{"0-4", 4}}) {
    expect_near(2 * (1.5e-6 * hops + 1e-7) * 1e3 / 1e-4, 1.1, 5, emulated("chain:5+routed", "1e-4"), 8, pair);
  }
}

// Where it is not routed, through the processes between, which are in a barrier or nothing: hop by hop.
TEST(Emulation, MessagesAreForwardedHopByHop) {
  for (const auto& [pair, hops] : {std::pair{"0-2", 2}, std::pair{"0-4", 4}}) {
    const double model = 2 * (1.5e-6 + 1e-7 + 1096 / 50e9) * hops * 1e3 / 1e-5;
    expect_near(model, 1.2, 5, emulated("chain:5", "1e-5"), 8, pair);
  }
}

// Out of one host and into the other, at 1.25 GB/s and 25 us; ranks 0 and 1 share the way out. The second message waits
// for the first, and overlaps with it by no more than the way into the other host.
TEST(Emulation, UplinksOfTwoHostsArePaced) {
  const Job::Environment hosts = emulated("2*torus:2x2", "1e-3");
  constexpr size_t kBytes = size_t{1} << 16;
  const double busy = kBytes / 1.25e9 * 1e3 / 1e-3;  // ms
  expect_near(2 * (busy + 25.1), 1.1, 8, hosts, kBytes, "0-4");
  double added = 0;  // in times of one message on the uplink
  for (int attempt = 0; attempt < kAttempts && !(added > 0.8 && added < 1.2); ++attempt) {
    const double alone = took_ms(8, hosts, kBytes, "0-4,9-9");
    added = (took_ms(8, hosts, kBytes, "0-4,1-5") - alone) / busy;
  }
  EXPECT_GT(added, 0.8);
  EXPECT_LT(added, 1.2);
}

TEST(Emulation, MessagesAreForwardedInsideEachOfSeveralHosts) {
  const double model = 2 * (1.5e-6 + 1e-7 + 1096 / 50e9) * 2 * 1e3 / 1e-4;  // two hops
  expect_near(model, 1.2, 8, emulated("2*chain:4", "1e-4"), 8, "0-2");
}

// Of splits by turns; "ready" after the third, whose sums were right.
TEST(Emulation, PartsImitateTheirPartOfTheHosts) {
  Job job("rank_program", 8, {"loop", "65536", "parts"}, [](int) { return emulated("2*torus:2x2", "1e-1"); });
  ASSERT_TRUE(job.wait_for("ready", first_ranks(8), milliseconds(60000))) << job.transcript();
  job.kill(5);
  expect_named(job, first_ranks(8, {5}), 5);
}

TEST(Emulation, ResultsAreRight) {
  for (const auto& [machine, nranks] :
       {std::pair{"trn1.32xlarge", 32}, std::pair{"2*torus:2x2", 8}, std::pair{"4*ring:2+racks:2/2", 8}}) {
    Job job("rank_program", nranks, {"links", "allreduce"}, [&](int) { return emulated(machine, "1e-2"); });
    ASSERT_TRUE(job.wait_for("done", first_ranks(nranks), milliseconds(60000))) << job.transcript();
    for (int rank = 0; rank < nranks; ++rank) EXPECT_EQ(job.line(rank, "wrong"), "") << machine << ", rank " << rank;
    EXPECT_TRUE(job.finish(milliseconds(10000)));
  }
}

TEST(Emulation, AKilledRankIsNamedBeforeItsMessagesAreDue) {
  Job job("rank_program", 4, {"loop", "4000000"}, [](int) { return emulated("torus:2x2", "1e-3"); });
  ASSERT_TRUE(job.wait_for("ready", first_ranks(4), milliseconds(60000))) << job.transcript();
  job.kill(2);
  expect_named(job, {0, 1, 3}, 2);
}

TEST(Emulation, DifferentCallsAreAMismatch) {
  Job job("rank_program", 4, {"mismatch", "2", "allreduce float32 sum count 1000", "allreduce float32 sum count 1024"},
          [](int) { return emulated("ring:4+routed", "1e-2"); });
  ASSERT_TRUE(job.wait_for("failed", first_ranks(4), milliseconds(60000))) << job.transcript();
  EXPECT_TRUE(job.finish(milliseconds(10000)));
}

TEST(Emulation, ALateRankIsNamedByTheTimeout) {
  Job job("rank_program", 2, {"sleep", "500"}, [](int) { return emulated("ring:2", "1e-3"); });
  ASSERT_TRUE(job.wait_for("failed", {0}, milliseconds(60000))) << job.transcript();
  EXPECT_NE(job.line(0, "failed").find("[1]"), std::string::npos) << job.transcript();
}

// Nobody starts, and rank 0 says why.
std::string refusal(const std::function<Job::Environment(int)>& environment) {
  Job job("rank_program", 2, {"links", "allreduce"}, environment);
  EXPECT_TRUE(job.wait_for("init", {0, 1}, milliseconds(30000))) << job.transcript();
  EXPECT_TRUE(job.finish(milliseconds(10000)));
  return job.line(0, "init");
}

TEST(Emulation, IsRefusedWhereItCannotBe) {
  EXPECT_THAT(refusal(ranks_on("shm", {{"CCOM_EMULATE_SCALE", "1e-3"}})), HasSubstr("set CCOM_TOPOLOGY"));
  for (const std::string scale : {"0", "2", "-1", "fast", "1e-3x", "nan"}) {
    EXPECT_THAT(refusal([&](int) { return emulated("ring:2", scale); }), HasSubstr("CCOM_EMULATE_SCALE=" + scale));
  }
  EXPECT_THAT(refusal([](int rank) { return emulated("ring:2", rank == 0 ? "1e-3" : "1e-4"); }),
              HasSubstr("CCOM_EMULATE_SCALE ("));
  const auto on_two_hosts = [](int rank) { return ranks_on("mixed", emulated("ring:2", "1e-3"))(2 * rank); };
  EXPECT_THAT(refusal(on_two_hosts), HasSubstr("fabric of one host"));
  EXPECT_THAT(refusal([](int) { return emulated("2*torus:2x2", "1e-3"); }),
              HasSubstr("has 8 ranks, but 2 were started"));
  EXPECT_THAT(refusal([](int) { return emulated("2*host:1", "1e-3"); }), HasSubstr("without a fabric"));
  EXPECT_THAT(refusal(ranks_on("tcp-on-one-host", emulated("ring:2", "1e-3"))), HasSubstr("shm"));
}

}  // namespace
}  // namespace ccom
