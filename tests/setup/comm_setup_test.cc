// SPDX-License-Identifier: Apache-2.0
//
// Start-up of ranks that are threads of this process, and what becomes of it when one rank leaves something out.
#include "setup/comm_setup.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>

#include "bootstrap/local_rendezvous.h"
#include "setup/agreement.h"
#include "setup/exchanges.pb.h"
#include "tests/harness/folder.h"
#include "tests/harness/threads.h"
#include "tests/setup/made_rendezvous.h"

namespace ccom {
namespace {

using Tamper = std::function<void(std::string_view phase, std::string& message)>;

// Lets `tamper` change what a rank says.
MadeRendezvous tampered(Rendezvous& real, const Tamper& tamper) {
  const auto gather = [&real, tamper](std::string_view phase, std::string mine, Deadline deadline) {
    wire::Part part;
    if (tamper && part.ParseFromString(mine) && part.has_message()) {
      tamper(phase, *part.mutable_message());
      mine = part.SerializeAsString();
    }
    return real.all_gather(phase, std::move(mine), deadline);
  };
  return MadeRendezvous(gather, &real);
}

struct Outcome {
  Topology topology;
  std::unique_ptr<CommSetup> setup;
  Status status;
};

// `outcome` stays where it is: the setup refers to its topology.
void start(const Membership& joining, const CommConfig& config, Rendezvous& rendezvous, Outcome& outcome,
           Deadline deadline = Deadline::after_ms(20000)) {
  Result<Agreement> agreement = agree(joining, config, rendezvous, deadline);
  outcome.status = agreement.error();
  if (!agreement) return;
  outcome.topology = std::move(agreement->topology);
  const std::vector<int> channels(static_cast<size_t>(joining.nranks), 1);
  auto setup = CommSetup::connect(agreement->membership, config, outcome.topology, outcome.topology, channels,
                                  rendezvous, deadline);
  outcome.status = setup.error();
  if (setup) outcome.setup = *std::move(setup);
}

// Ranks 0 to nranks-1; the messages of one of them go through `tamper`.
std::vector<std::unique_ptr<Outcome>> start_all(int nranks, const Tamper& tamper = {}, Rank changed = 1) {
  CommConfig config = *CommConfig::from_environment();
  config.messages = true;
  const auto hub = LocalHub::create();
  const Secret secret = Secret::random();
  std::vector<std::unique_ptr<Outcome>> outcomes(static_cast<size_t>(nranks));
  run_ranks(nranks, [&](Rank rank) {
    const std::unique_ptr<Rendezvous> real = *hub->join(nranks, rank);
    MadeRendezvous rendezvous = tampered(*real, rank == changed ? tamper : Tamper());
    auto& outcome = outcomes[static_cast<size_t>(rank)] = std::make_unique<Outcome>();
    start({rank, nranks, 0, secret}, config, rendezvous, *outcome);
  });
  return outcomes;
}

TEST(CommSetup, JoinsAllRanks) {
  const auto outcomes = start_all(3);
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->status.is_ok()) << outcome->status.message();
    EXPECT_EQ(outcome->setup->transport_names(), "shm");
    const auto node = outcome->setup->node_config();
    ASSERT_TRUE(node.has_value());
    EXPECT_EQ(node->layout.ranks, 3);
    EXPECT_EQ(node->peers.size(), 3u);
    EXPECT_EQ(node->region_offset % 4096, 0u);
    EXPECT_EQ(node->region_offset, outcomes[0]->setup->node_config()->region_offset);
    EXPECT_EQ(node->segment, outcomes[0]->setup->node_config()->segment) << "one mapping per process";
    const auto routes = outcome->setup->message_routes();
    ASSERT_TRUE(routes && routes->has_value());
    EXPECT_EQ((*routes)->by_peer.size(), 3u);
  }
}

// What two ranks agree on that read these tuning files.
std::vector<Result<Agreement>> agree_with(const std::array<std::string, 2>& files) {
  const auto hub = LocalHub::create();
  const Secret secret = Secret::random();
  std::vector<Result<Agreement>> agreed(2, error(Code::InternalError, "nothing yet"));
  run_ranks(2, [&](Rank rank) {
    CommConfig config = *CommConfig::from_environment();
    config.tuning = files[static_cast<size_t>(rank)];
    const std::unique_ptr<Rendezvous> rendezvous = *hub->join(2, rank);
    agreed[static_cast<size_t>(rank)] = agree({rank, 2, 0, secret}, config, *rendezvous, Deadline::after_ms(20000));
  });
  return agreed;
}

// A job may replace the file while ranks read it.
TEST(CommSetup, IgnoresWaysThatRanksHaveReadDifferently) {
  const TemporaryFolder folder;
  const std::array<std::string, 2> files{folder / "a.json", folder / "b.json"};
  const auto write = [&](size_t file, const char* way) {
    std::ofstream(files[file])
        << R"({"costs": {"post_ns": 5}, "ways": {"processor": "p", "version": "v", "kinds": [)"
        << R"({"stage": "allreduce", "call": "c", "buffers": "ordinary", "ranks": 2, "units": 1,)"
        << R"("unit_bytes": 9, "in_use": ")" << way << R"(", "calls": 9, "median_us": []}]}})";
  };
  write(0, "pull");
  write(1, "pull");
  for (const Result<Agreement>& agreed : agree_with(files)) {
    ASSERT_TRUE(agreed) << agreed.error().message();
    ASSERT_EQ(agreed->ways.kinds.size(), 1U);
    EXPECT_EQ(agreed->ways.kinds[0].in_use, "pull");
    EXPECT_EQ(agreed->topology.costs.post_ns, 5);
  }
  write(1, "two_shot");
  for (const Result<Agreement>& agreed : agree_with(files)) {
    ASSERT_TRUE(agreed) << agreed.error().message();
    EXPECT_TRUE(agreed->ways.kinds.empty());
    EXPECT_EQ(agreed->topology.costs.post_ns, 5);
  }
}

// What most ranks say alike is said once: by the lowest.
TEST(CommSetup, ATextThatRanksHaveAlikeIsSentOnce) {
  std::array<size_t, 3> bytes{};
  const auto hub = LocalHub::create();
  const Secret secret = Secret::random();
  run_ranks(3, [&](Rank rank) {
    const std::unique_ptr<Rendezvous> real = *hub->join(3, rank);
    MadeRendezvous rendezvous = tampered(
        *real, [&, rank](std::string_view, std::string& text) { bytes[static_cast<size_t>(rank)] += text.size(); });
    const auto agreed =
        agree({rank, 3, 0, secret}, *CommConfig::from_environment(), rendezvous, Deadline::after_ms(20000));
    EXPECT_TRUE(agreed) << agreed.error().message();
  });
  EXPECT_GT(bytes[0], 500U);
  EXPECT_LT(std::max(bytes[1], bytes[2]), 200U) << "hashes, and the CPUs of a rank that is bound";
}

template <typename Message>
Tamper change(std::string_view where, void (*edit)(Message&)) {
  return [where, edit](std::string_view phase, std::string& text) {
    if (phase != where) return;
    Message message;
    ASSERT_TRUE(message.ParseFromString(text));
    edit(message);
    text = message.SerializePartialAsString();
  };
}

void expect_blamed(const Tamper& tamper, const std::string& text, Rank changed = 1) {
  for (const auto& outcome : start_all(3, tamper, changed)) {
    ASSERT_FALSE(outcome->status.is_ok()) << text;
    EXPECT_EQ(outcome->setup, nullptr);
    EXPECT_NE(outcome->status.message().find(text), std::string::npos) << outcome->status.message();
    EXPECT_EQ(outcome->status.peers(), std::vector<int>{changed});
  }
}

// A rank that says something of its own, and what.
Tamper describe(void (*digest)(wire::RankDigest&), void (*texts)(wire::RankTexts&)) {
  const Tamper first = change<wire::RankDigest>("hosts", digest);
  const Tamper second = change<wire::RankTexts>("descriptions", texts);
  return [first, second](std::string_view phase, std::string& text) {
    first(phase, text);
    second(phase, text);
  };
}

TEST(CommSetup, WhatARankLeavesOutNamesIt) {
  using wire::Addresses, wire::Capabilities, wire::Connected, wire::RankDigest;
  expect_blamed(change<RankDigest>("hosts", [](auto& m) { m.clear_host(); }), "rank 1, hosts: sent no");
  expect_blamed(describe([](auto& m) { m.set_locality(1); }, [](auto& m) { m.clear_locality(); }),
                "rank 1, descriptions: sent no locality");
  expect_blamed(describe([](auto& m) { m.set_locality(1); }, [](auto& m) { m.set_locality("["); }), "rank 1, hosts: ");
  expect_blamed(change<Capabilities>("segments", [](auto& m) { m.clear_process(); }), "rank 1, segments: sent no");
  expect_blamed(change<Capabilities>("segments", [](auto& m) { m.clear_memory(); }),
                "rank 1, segments: sent no memory");
  expect_blamed(change<Addresses>("addresses", [](auto& m) { m.clear_control(); }), "rank 1, addresses: sent no");
  expect_blamed(change<Addresses>("addresses", [](auto& m) { m.clear_arena(); }), "rank 1, addresses: sent no arena");
  expect_blamed(change<Addresses>("addresses", [](auto& m) { m.clear_messages(); }),
                "rank 1, addresses: sent no messages");
  expect_blamed(change<Connected>("connections", [](auto& m) { m.clear_reads(); }), "rank 1, connections: sent no");
}

TEST(CommSetup, ARankWithOtherPagesOnTheSameHostIsNamed) {
  expect_blamed(describe([](auto& m) { m.set_machine(1); },
                         [](auto& m) {
                           wire::Machine machine;
                           machine.set_page_bytes(65536);
                           Host host;
                           host.id = "-";
                           machine.set_host(to_json(host));
                           m.set_machine(machine.SerializeAsString());
                         }),
                "rank 1 has memory pages of 65536 bytes, rank 0 on the same host of 4096");
}

TEST(CommSetup, AMissingSegmentNamesTheLeader) {
  expect_blamed(change<wire::Capabilities>("segments", [](auto& m) { m.set_segment(""); }),
                "rank 0, segments: sent no segment", 0);
}

TEST(CommSetup, AnotherTopologyNamesARank) {
  const auto outcomes =
      start_all(3, change<wire::Connected>("connections", [](auto& m) { m.set_topology(m.topology() + 1); }));
  EXPECT_NE(outcomes[0]->status.message().find("rank 1 derived another topology"), std::string::npos);
  EXPECT_EQ(outcomes[2]->status.peers(), std::vector<int>{1});
}

// Rank 1 ends after its exchange of addresses; the others wait for its connections.
// They used to wait until their time was up, had none left to ask who was missing, and blamed rank 0, which had not
// answered.
TEST(CommSetup, WhoHasDialledInVainHasTimeToHearWhoIsMissing) {
  CommConfig config = *CommConfig::from_environment();
  config.transports = {"tcp"};
  const auto hub = LocalHub::create();
  const Secret secret = Secret::random();
  std::vector<std::unique_ptr<Outcome>> outcomes(3);
  std::vector<int64_t> left_ms(3, -1);
  run_ranks(3, [&](Rank rank) {
    const std::unique_ptr<Rendezvous> real = *hub->join(3, rank);
    const auto gather = [&](std::string_view phase, std::string mine, Deadline deadline) -> MadeRendezvous::Parts {
      if (phase == "connections") left_ms[static_cast<size_t>(rank)] = deadline.left_ms();
      auto all = real->all_gather(phase, std::move(mine), deadline);
      if (rank == 1 && phase == "addresses") return error(Code::Aborted, "this rank ends");
      return all;
    };
    MadeRendezvous rendezvous(gather, real.get());
    auto& outcome = outcomes[static_cast<size_t>(rank)] = std::make_unique<Outcome>();
    start({rank, 3, 0, secret}, config, rendezvous, *outcome, Deadline::after_ms(3000));
  });
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(outcomes[rank]->status.peers(), std::vector<int>{1}) << outcomes[rank]->status.message();
    EXPECT_GE(left_ms[rank], 500) << "of a second";
  }
}

// What one rank cannot do none of its host's ranks does.
TEST(CommSetup, OnlyMeansThatAllRanksHaveAreUsed) {
  const auto outcomes = start_all(3, change<wire::Connected>("connections", [](auto& m) {
                                    m.set_arenas(false);
                                    m.set_fences(false);
                                  }));
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->status.is_ok()) << outcome->status.message();
    EXPECT_FALSE(outcome->setup->node_config()->means.arenas);
    EXPECT_FALSE(outcome->setup->node_config()->barrier.asymmetric);
  }
}

}  // namespace
}  // namespace ccom
