// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads over the public API: makes the communicators, runs one function per rank, destroys them.
#pragma once

#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <functional>
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

}  // namespace ccom
