// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads over the public API: makes the communicators, runs one function per rank, destroys them.
#pragma once

#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace ccom {

inline void with_ranks(int nranks, const ccomConfig_t* config, const std::function<void(int, ccomComm_t)>& run) {
  std::vector<ccomComm_t> comms(static_cast<size_t>(nranks));
  ASSERT_EQ(ccomCommInitAll(comms.data(), nranks, config), ccomSuccess) << ccomGetLastError(nullptr);
  std::vector<std::thread> threads;
  for (int r = 0; r < nranks; ++r) threads.emplace_back([&run, &comms, r] { run(r, comms[static_cast<size_t>(r)]); });
  for (std::thread& thread : threads) thread.join();
  for (ccomComm_t comm : comms) EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
}

inline void with_ranks(int nranks, const std::function<void(int, ccomComm_t)>& run) {
  with_ranks(nranks, nullptr, run);
}

// The same on emulated hosts, which take turns; a rank destroys its communicator when it ends, or has already: then
// `run` returns true.
inline void with_ranks_on(int hosts, int nranks, const std::function<bool(int, ccomComm_t)>& run) {
  ccomUniqueId id;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess) << ccomGetLastError(nullptr);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([=, &run] {
      const std::string host = "host" + std::to_string(rank % hosts);
      ccomConfig_t config = CCOM_CONFIG_INIT;
      config.hostId = host.c_str();
      ccomComm_t comm = nullptr;
      ASSERT_EQ(ccomCommInitRankConfig(&comm, nranks, id, rank, &config), ccomSuccess) << ccomGetLastError(nullptr);
      if (run(rank, comm)) return;
      EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ccom
