// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/world.h"

#include <string>

#include "tests/harness/threads.h"

namespace ccom {
namespace {

void run_and_destroy(std::vector<ccomComm_t>& comms, const RankBody& body) {
  const int ranks = static_cast<int>(comms.size());
  run_ranks(ranks, [&](int rank) {
    ccomComm_t& comm = comms[static_cast<size_t>(rank)];
    if (!passes([&] { body(rank, comm); }) && comm != nullptr) ccomCommAbort(comm);
  });
  run_ranks(ranks, [&](int rank) {
    const ccomComm_t comm = comms[static_cast<size_t>(rank)];
    if (comm == nullptr) return;
    EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
  });
}

}  // namespace

std::vector<int> hosts_in_order(int ranks, int ranks_per_host) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / ranks_per_host);
  return hosts;
}

std::vector<int> hosts_in_turn(int ranks, int hosts) {
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank % hosts);
  return all;
}

void with_ranks(const World& world, const RankBody& body) {
  ccomUniqueId id;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess) << ccomGetLastError(nullptr);
  std::vector<ccomComm_t> comms(world.hosts.size());
  run_and_destroy(comms, [&](int rank, ccomComm_t& comm) {
    const std::string host = "host" + std::to_string(world.hosts[static_cast<size_t>(rank)]);
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.hostId = host.c_str();
    config.timeoutMs = world.timeout_ms;
    config.transport = world.transport;
    config.topology = world.topology;
    config.algorithm = world.algorithm;
    config.determinism = world.determinism;
    config.rounding = world.rounding;
    config.roundingSeed = 17;
    config.wire = world.wire;
    config.messages = world.messages ? 1 : 0;
    ASSERT_EQ(ccomCommInitRankConfig(&comm, world.ranks(), id, rank, &config), ccomSuccess)
        << ccomGetLastError(nullptr);
    body(rank, comm);
  });
}

void with_ranks(int ranks, const ccomConfig_t* config, const RankBody& body) {
  std::vector<ccomComm_t> comms(static_cast<size_t>(ranks));
  ASSERT_EQ(ccomCommInitAll(comms.data(), ranks, config), ccomSuccess) << ccomGetLastError(nullptr);
  run_and_destroy(comms, body);
}

}  // namespace ccom
