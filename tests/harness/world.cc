// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/world.h"

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
    EXPECT_OK(ccomCommDestroy(comm));
  });
}

}  // namespace

ccomResult_t async_error(ccomComm_t comm) {
  ccomResult_t result = ccomSuccess;
  EXPECT_OK(ccomCommGetAsyncError(comm, &result));
  return result;
}

ccomErrorInfo_t error_info(ccomComm_t comm) {
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  EXPECT_OK(ccomGetErrorInfo(comm, &info));
  return info;
}

ccomUniqueId new_id() {
  ccomUniqueId id;
  EXPECT_OK(ccomGetUniqueId(&id));
  return id;
}

ccomStream_t new_stream() {
  ccomStream_t stream = nullptr;
  EXPECT_OK(ccomStreamCreate(&stream));
  return stream;
}

ccomRedOp_t new_operator(ccomRedOpFn function, void* context, ccomRedOpOrder_t order, ccomComm_t comm) {
  ccomRedOp_t op = 0;
  EXPECT_OK(ccomRedOpCreate(&op, function, context, order, comm));
  return op;
}

int rank_in(ccomComm_t comm) {
  int rank = -1;
  EXPECT_OK(ccomCommUserRank(comm, &rank));
  return rank;
}

int ranks_of(ccomComm_t comm) {
  int count = 0;
  EXPECT_OK(ccomCommCount(comm, &count));
  return count;
}

std::vector<int> gathered(ccomComm_t comm, int value) {
  std::vector<int> all(static_cast<size_t>(ranks_of(comm)), -1);
  EXPECT_OK(ccomAllGather(&value, all.data(), 1, ccomInt32, comm, nullptr));
  return all;
}

void expect_disagreement(const std::function<void(int, ccomConfig_t&)>& set, const std::string& part) {
  const ccomUniqueId id = new_id();
  run_ranks(2, [&](int rank) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    set(rank, config);
    ccomComm_t comm = nullptr;
    EXPECT_ERROR(ccomCommInitRankConfig(&comm, 2, id, rank, &config), ccomConfigError, part);
  });
}

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
  const ccomUniqueId id = new_id();
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
    ASSERT_OK(ccomCommInitRankConfig(&comm, world.ranks(), id, rank, &config));
    body(rank, comm);
  });
}

void with_ranks(int ranks, const ccomConfig_t* config, const RankBody& body) {
  std::vector<ccomComm_t> comms(static_cast<size_t>(ranks));
  ASSERT_OK(ccomCommInitAll(comms.data(), ranks, config));
  run_and_destroy(comms, body);
}

}  // namespace ccom
