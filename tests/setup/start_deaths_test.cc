// SPDX-License-Identifier: Apache-2.0
//
// A rank that dies between an answer of the rendezvous server and what the others wait for next, its connections: they
// name it at once. The rank is a process of its own that kills itself there; the others are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>

#include "bootstrap/grpc_client.h"
#include "setup/agreement.h"
#include "setup/comm_setup.h"
#include "tests/bootstrap/test_rendezvous.h"
#include "tests/harness/child.h"
#include "tests/setup/made_rendezvous.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int64_t kInitMs = 60000;

struct Death {
  const char* name;
  const char* transport;
  bool one_host;
  const char* phase;  // the exchange after which it dies
  Rank victim;
  bool by_relay = false;  // ranks of this machine meet through one
};
const Death kDeaths[] = {
    {"LeaderWaitsForClients", "shm", true, "segments", 1},
    {"ClientsWaitForTheLeader", "shm", true, "segments", 0},
    {"MemoryIsTraded", "shm", true, "addresses", 1},
    {"TcpOnOneHost", "tcp", true, "addresses", 1},
    {"TcpAcceptsOnHosts", "tcp", false, "addresses", 2},
    {"TcpDialsOnHosts", "tcp", false, "addresses", 0},
    {"OfiOnHosts", "ofi", false, "addresses", 1},
    {"ByRelayTheLeaderWaits", "shm", true, "segments", 1, true},
    {"ByRelayClientsWait", "shm", true, "segments", 0, true},
    {"ByRelayTcpOnHosts", "tcp", false, "addresses", 2, true},
};

// As far as the connections.
Status start(const UniqueId& id, const Death& death, Rank rank) {
  const Deadline deadline = Deadline::after_ms(kInitMs);
  CommConfig config = *CommConfig::from_environment();
  config.transports = {death.transport};
  if (!death.one_host) config.host_id = "host" + std::to_string(rank);
  config.ofi_provider = "tcp";
  const RelayUse relays{.host = config.host_id, .most_without = death.by_relay ? 0 : kRanks};
  CCOM_TRY_ASSIGN(const auto connection, connect_rendezvous(id, kRanks, rank, deadline, {}, relays));
  const auto gather = [&](std::string_view phase, std::string mine, Deadline until) {
    auto all = connection->all_gather(phase, std::move(mine), until);
    if (all && rank == death.victim && phase == death.phase) ::raise(SIGKILL);
    return all;
  };
  MadeRendezvous rendezvous(gather, connection.get());
  CCOM_TRY_ASSIGN(Agreement agreement, agree({rank, kRanks, id.communicator, id.secret}, config, rendezvous, deadline));
  CCOM_TRY_ASSIGN(const auto setup,
                  CommSetup::connect(agreement.membership, config, agreement.topology, agreement.topology,
                                     std::vector<int>(kRanks, 1), rendezvous, deadline));
  return {};
}

class StartDeaths : public ::testing::TestWithParam<Death> {
 protected:
  static void SetUpTestSuite() {
    for (const Death& death : kDeaths) {
      const auto die = [&death](const PacketSocket& test) {
        (void)start(*unpack(test.receive_value<UniqueId::Packed>()), death, death.victim);
        return 2;
      };
      victims[death.name] = std::make_unique<Child>(die, kSuiteSeconds);
    }
  }
  static void TearDownTestSuite() { victims.clear(); }

  static inline std::map<std::string, std::unique_ptr<Child>> victims;
};

// They used to name it when the start's time was up.
TEST_P(StartDeaths, ARankThatDiesBeforeItsConnectionsIsNamedAtOnce) {
  const Death& death = GetParam();
  const TestServer hosted = start_test_server(Deadline::after_ms(2 * kInitMs));
  const Child& victim = *victims[death.name];
  victim.send_value(*pack(hosted.id));
  const auto begin = Clock::now();
  run_ranks(kRanks, [&](Rank rank) {
    if (rank == death.victim) return;
    const Status status = start(hosted.id, death, rank);
    EXPECT_EQ(status.code(), Code::RemoteError);
    EXPECT_THAT(status.peers(), ElementsAre(death.victim)) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("rank " + std::to_string(death.victim) + " (process "));
  });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10)) << "the start, and not until its time is up";
}

INSTANTIATE_TEST_SUITE_P(When, StartDeaths, ::testing::ValuesIn(kDeaths),
                         [](const auto& death) { return death.param.name; });

}  // namespace
}  // namespace ccom
