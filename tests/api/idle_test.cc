// SPDX-License-Identifier: Apache-2.0
//
// What communicators cost that nobody uses: hardly anything, over every transport.
#include <sys/resource.h>

#include <barrier>
#include <chrono>

#include "tests/harness/world.h"

namespace ccom {
namespace {

using std::chrono::microseconds;

// Of all threads of this process.
microseconds processor_time() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  const auto of = [](const timeval& time) { return std::chrono::seconds(time.tv_sec) + microseconds(time.tv_usec); };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST(IdleCommunicator, UsesLessThanAThousandthOfACorePerRank) {
  constexpr int kRanks = 4;
  constexpr auto kIdle = std::chrono::seconds(2);
  for (const char* transport : {"tcp", "shm"}) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.transport = transport;
    std::barrier<> together(kRanks);
    with_ranks(kRanks, &config, [&](int rank, ccomComm_t comm) {
      float value = 1;
      ASSERT_OK(ccomAllReduce(&value, &value, 1, ccomFloat32, ccomSum, comm, nullptr));
      together.arrive_and_wait();
      const microseconds before = processor_time();
      std::this_thread::sleep_for(kIdle);
      const microseconds used = processor_time() - before;
      EXPECT_LT(used, microseconds(kIdle) * kRanks / 1000) << transport << ", rank " << rank;
      together.arrive_and_wait();
    });
  }
}

}  // namespace
}  // namespace ccom
