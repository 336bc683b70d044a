// SPDX-License-Identifier: Apache-2.0
//
// Ranks that leave a communicator after different calls, none of which had to wait for the other, are told so: the ones
// that are still there, or the last one that leaves.
#include <barrier>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/api/worlds.h"
#include "tests/harness/environment.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

ccomResult_t broadcast(ccomComm_t comm, int root, std::vector<float>& data) {
  return ccomBroadcast(data.data(), data.data(), data.size(), ccomFloat32, root, comm, nullptr);
}

// Warnings while it exists.
class Warnings {
 public:
  Warnings() { EXPECT_OK(ccomSetLogCallback(&Warnings::add, this)); }
  ~Warnings() { EXPECT_OK(ccomSetLogCallback(nullptr, nullptr)); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  static void add(ccomLogLevel_t level, const char* message, void* self) {
    if (level > ccomLogWarn) return;
    auto& lines = *static_cast<Warnings*>(self);
    const std::lock_guard lock(lines.mutex_);
    lines.text_ += std::string(message) + "\n";
  }
  std::mutex mutex_;
  std::string text_;
};

// Between hosts who leaves later knows of the one before only when it has been told, which nothing shows here.
void be_told(const World& world) {
  if (world.hosts[0] != world.hosts[1]) std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

class Leaving : public testing::TestWithParam<World> {};

// Each rank takes itself for the root, so none waits for another. One rank after the other finalizes.
TEST_P(Leaving, U1AfterDifferentCallsIsAnErrorOfTheLastOne) {
  for (const size_t count : {size_t{1}, size_t{256}}) {
    std::barrier<> together(GetParam().ranks());
    with_ranks(GetParam(), [&](int rank, ccomComm_t& comm) {
      std::vector<float> data(count, static_cast<float>(rank));
      for (int i = 0; i < 20; ++i) ASSERT_OK(broadcast(comm, rank, data));
      together.arrive_and_wait();
      if (rank != 0) together.arrive_and_wait(), be_told(GetParam());
      const ccomResult_t result = ccomCommFinalize(comm);
      const std::string text = error_text();
      if (rank == 0) {
        together.arrive_and_wait();
        EXPECT_EQ(result, ccomSuccess);
        return;
      }
      EXPECT_EQ(result, ccomMismatch) << text;
      EXPECT_THAT(text, HasSubstr("ranks made different calls: rank 0: "));
      // Hosts that a tool watches, of whomever on this machine, compare their last eight calls meanwhile.
      EXPECT_THAT(text, testing::AnyOf(HasSubstr("before they left"), HasSubstr("(call 13)")));
      if (GetParam().hosts[0] == GetParam().hosts[1]) {
        EXPECT_THAT(text, HasSubstr("before they left"));
        EXPECT_THAT(text, HasSubstr("root 0 (call 20); rank 1: broadcast float32 count " + std::to_string(count) +
                                    " root 1 (call 20)"));
      }
    });
  }
}

// The root made one more, which nobody waited for. Whoever leaves last finds it.
TEST_P(Leaving, U1AfterOneCallMoreIsAnErrorOfTheLastOne) {
  for (const int first : {0, 1}) {
    std::barrier<> together(GetParam().ranks());
    with_ranks(GetParam(), [&](int rank, ccomComm_t& comm) {
      std::vector<float> data(2);
      for (int i = 0; i < 5 + (rank == 0 ? 1 : 0); ++i) ASSERT_OK(broadcast(comm, 0, data));
      together.arrive_and_wait();
      if (rank != first) together.arrive_and_wait(), be_told(GetParam());
      const ccomResult_t result = ccomCommFinalize(comm);
      if (rank == first) together.arrive_and_wait();
      EXPECT_EQ(result, rank == first ? ccomSuccess : ccomMismatch) << error_text();
    });
  }
}

TEST_P(Leaving, U1AfterDifferentCallsIsAWarningWhereAllHaveGone) {
  Warnings warnings;
  with_ranks(GetParam(), [](int rank, ccomComm_t& comm) {
    std::vector<float> data(8);
    for (int i = 0; i < 3; ++i) ASSERT_OK(broadcast(comm, rank, data));
  });
  EXPECT_THAT(warnings.text(), HasSubstr("ranks made different calls: rank 0: "));
}

TEST_P(Leaving, AfterTheSameCallsIsSilent) {
  Warnings warnings;
  with_ranks(GetParam(), [](int rank, ccomComm_t& comm) {
    std::vector<float> data(8);
    for (int i = 0; i < 50; ++i) ASSERT_OK(broadcast(comm, i % 2, data));
    if (rank == 0) {
      EXPECT_OK(ccomCommFinalize(comm));
    }
  });
  EXPECT_EQ(warnings.text(), "");
}

INSTANTIATE_TEST_SUITE_P(Api, Leaving,
                         testing::Values(World{"shm", {0, 0}}, World{"tcp", {0, 0}, "tcp"}, World{"hosts", {0, 1}}),
                         [](const auto& world) { return std::string(world.param.name); });

class Staying : public testing::TestWithParam<World> {};

TEST_P(Staying, U1IsToldThatOthersLeftAfterDifferentCalls) {
  std::barrier<> together(GetParam().ranks());
  with_ranks(GetParam(), [&](int rank, ccomComm_t& comm) {
    std::vector<float> data(8);
    for (int i = 0; i < 3; ++i) ASSERT_OK(broadcast(comm, rank, data));
    together.arrive_and_wait();
    if (rank != 2) {
      const ccomResult_t result = ccomCommFinalize(comm);
      EXPECT_TRUE(result == ccomSuccess || result == ccomMismatch) << error_text();
      return;
    }
    wait_until([&] { return async_error(comm) != ccomSuccess; });
    EXPECT_EQ(async_error(comm), ccomMismatch);
    EXPECT_THAT(ccomGetLastError(comm), HasSubstr("ranks made different calls: rank 0: "));
  });
}

INSTANTIATE_TEST_SUITE_P(Api, Staying,
                         testing::Values(World{"shm", {0, 0, 0}}, World{"hosts", {0, 0, 1}}, World{"far", {0, 1, 1}}),
                         [](const auto& world) { return std::string(world.param.name); });

// With the witness the call itself finds it.
TEST_P(Leaving, U1WithTheWitnessDifferentRootsAreAnErrorOfTheCall) {
  const ScopedVariable witness("CCOM_WITNESS", "1");
  with_ranks(GetParam(), [](int rank, ccomComm_t& comm) {
    std::vector<float> data(8);
    ASSERT_OK(broadcast(comm, 1, data));
    EXPECT_EQ(broadcast(comm, rank, data), ccomMismatch) << error_text();
    EXPECT_THAT(error_text(), HasSubstr("ranks made different calls"));
  });
}

}  // namespace
}  // namespace ccom
