// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads on hosts, transports and fabrics of many forms.
#pragma once

#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace ccom {

// Where ranks run.
struct World {
  const char* name;
  std::vector<int> hosts;  // by rank
  const char* transport = nullptr;
  const char* topology = nullptr;
  const char* algorithm = nullptr;
  const char* determinism = nullptr;
  const char* rounding = nullptr;
  const char* wire = nullptr;
  int ranks() const { return static_cast<int>(hosts.size()); }
};
inline void PrintTo(const World& world, std::ostream* out) { *out << world.name; }

inline std::vector<World> worlds() {
  return {{"one", {0}},
          {"two", {0, 0}},
          {"three", {0, 0, 0}},
          {"eight", {0, 0, 0, 0, 0, 0, 0, 0}},
          {"tcp", {0, 0, 0, 0, 0}, "tcp"},
          {"shm_messages", {0, 0, 0, 0}, nullptr, nullptr, "recursive_doubling"},
          {"gather_tree", {0, 0, 0, 0, 0}, "tcp", nullptr, "gather_tree"},
          {"in_order", {0, 0, 0, 0, 0}, "tcp", nullptr, "reduce:in_order"},
          {"hosts_2_2", {0, 0, 1, 1}},
          {"hosts_3_1_2", {0, 0, 0, 1, 2, 2}},
          {"hosts_in_turn", {0, 1, 0, 1, 0}},
          {"hosts_of_one", {0, 1, 2}},
          {"ring_5", {0, 0, 0, 0, 0}, nullptr, "ring:5"},
          {"torus_2_3", {0, 0, 0, 0, 0, 0}, nullptr, "torus:2x3"}};
}

inline void run_in(const World& world, const std::function<void(int, ccomComm_t)>& run) {
  ccomUniqueId id;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess) << ccomGetLastError(nullptr);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    threads.emplace_back([rank, id, &run, &world] {
      const std::string host = "host" + std::to_string(world.hosts[static_cast<size_t>(rank)]);
      ccomConfig_t config = CCOM_CONFIG_INIT;
      config.hostId = host.c_str();
      config.timeoutMs = 60000;
      config.transport = world.transport;
      config.topology = world.topology;
      config.algorithm = world.algorithm;
      config.determinism = world.determinism;
      config.rounding = world.rounding;
      config.wire = world.wire;
      config.roundingSeed = 17;
      ccomComm_t comm = nullptr;
      ASSERT_EQ(ccomCommInitRankConfig(&comm, world.ranks(), id, rank, &config), ccomSuccess)
          << ccomGetLastError(nullptr);
      run(rank, comm);
      EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ccom
