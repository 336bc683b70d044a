// SPDX-License-Identifier: Apache-2.0
//
// Persistent calls: the results and errors of the collectives that they stand for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/world.h"

namespace ccom {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3, kRoot = 1;

// A persistent call, freed at the end.
class Persistent {
 public:
  template <typename... Rest>
  explicit Persistent(const char* collective, Rest... rest) {
    EXPECT_OK(ccomPersistentInit(&call_, collective, rest...));
  }
  ~Persistent() { EXPECT_OK(ccomPersistentFree(call_)); }
  Persistent(const Persistent&) = delete;
  Persistent& operator=(const Persistent&) = delete;
  ccomResult_t start(ccomStream_t stream = nullptr) { return ccomPersistentStart(call_, stream); }

 private:
  ccomPersistent_t call_ = nullptr;
};

struct Named {
  const char* name;
  ccomResult_t (*call)(const int* send, int* recv, size_t count, ccomComm_t comm);
};
const std::vector<Named>& all() {
  static const std::vector<Named> named{
      {"allreduce",
       [](const int* send, int* recv, size_t count, ccomComm_t comm) {
         return ccomAllReduce(send, recv, count, ccomInt32, ccomMax, comm, nullptr);
       }},
      {"allgather", [](const int* send, int* recv, size_t count,
                       ccomComm_t comm) { return ccomAllGather(send, recv, count, ccomInt32, comm, nullptr); }},
      {"reduce_scatter",
       [](const int* send, int* recv, size_t count, ccomComm_t comm) {
         return ccomReduceScatter(send, recv, count, ccomInt32, ccomMax, comm, nullptr);
       }},
      {"broadcast", [](const int* send, int* recv, size_t count,
                       ccomComm_t comm) { return ccomBroadcast(send, recv, count, ccomInt32, kRoot, comm, nullptr); }},
      {"reduce",
       [](const int* send, int* recv, size_t count, ccomComm_t comm) {
         return ccomReduce(send, recv, count, ccomInt32, ccomMax, kRoot, comm, nullptr);
       }},
      {"alltoall", [](const int* send, int* recv, size_t count,
                      ccomComm_t comm) { return ccomAlltoAll(send, recv, count, ccomInt32, comm, nullptr); }},
      {"gather", [](const int* send, int* recv, size_t count,
                    ccomComm_t comm) { return ccomGather(send, recv, count, ccomInt32, kRoot, comm, nullptr); }},
      {"scatter", [](const int* send, int* recv, size_t count,
                     ccomComm_t comm) { return ccomScatter(send, recv, count, ccomInt32, kRoot, comm, nullptr); }},
  };
  return named;
}

class OfEachSize : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Persistent, OfEachSize, ::testing::Values(0, 1, 2, 700, 300'000));

// Also where other ranks make the plain call, and with what the buffers hold at the start.
TEST_P(OfEachSize, HasTheResultOfTheCollective) {
  with_ranks(kRanks, [count = GetParam()](int rank, ccomComm_t comm) {
    std::vector<int> send(kRanks * count), expected(kRanks * count, -1), recv(kRanks * count, -1);
    for (const Named& named : all()) {
      Persistent call(named.name, send.data(), recv.data(), count, ccomInt32, ccomMax, kRoot, comm);
      for (int round = 0; round < 3; ++round) {
        std::iota(send.begin(), send.end(), (rank + 1) * 1000 * (round + 1));
        ASSERT_OK(named.call(send.data(), expected.data(), count, comm));
        const bool is_plain = round == 1 && rank == 0;
        ASSERT_OK(is_plain ? named.call(send.data(), recv.data(), count, comm) : call.start());
        ASSERT_EQ(recv, expected) << named.name << ", round " << round;
      }
    }
  });
}

TEST(Persistent, RunsOnStreamsAndInGroups) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    std::array<float, 2> data{1, 2}, sum{};
    Persistent call("allreduce", data.data(), sum.data(), size_t{2}, ccomFloat32, ccomSum, 0, comm);
    ccomStream_t stream = nullptr;
    ASSERT_OK(ccomStreamCreate(&stream));
    ASSERT_OK(call.start(stream));
    ASSERT_OK(ccomStreamSynchronize(stream, -1));
    EXPECT_EQ(sum, (std::array<float, 2>{2, 4}));
    sum = {};
    ASSERT_OK(ccomGroupStart());
    ASSERT_OK(call.start());
    EXPECT_EQ(sum, (std::array<float, 2>{})) << "it ran before the group's end on rank " << rank;
    ASSERT_OK(ccomGroupEnd());
    EXPECT_EQ(sum, (std::array<float, 2>{2, 4}));
    ASSERT_OK(ccomStreamDestroy(stream));
  });
}

TEST(Persistent, WaitsForAllRanksInABarrier) {
  std::atomic<int> come = 0;
  with_ranks(2, [&](int rank, ccomComm_t comm) {
    Persistent call("barrier", nullptr, nullptr, size_t{0}, ccomInt8, ccomSum, 0, comm);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++come;
    ASSERT_OK(call.start());
    EXPECT_EQ(come, 2);
  });
}

// The scalar is read when the call runs; the handle may be gone.
TEST(Persistent, KeepsItsOperator) {
  with_ranks(2, [](int, ccomComm_t comm) {
    float data = 3, sum = 0, scalar = 2;
    ccomRedOp_t twice = ccomSum;
    ASSERT_OK(ccomRedOpCreatePreMulSum(&twice, &scalar, ccomFloat32, ccomScalarDevice, comm));
    Persistent call("allreduce", &data, &sum, size_t{1}, ccomFloat32, twice, 0, comm);
    ASSERT_OK(ccomRedOpDestroy(twice, comm));
    ASSERT_OK(call.start());
    EXPECT_EQ(sum, 12);
    scalar = 4;
    ASSERT_OK(call.start());
    EXPECT_EQ(sum, 24);
  });
}

TEST(Persistent, IsRefusedAsTheCollectiveIs) {
  with_ranks(2, [](int, ccomComm_t comm) {
    float data = 0;
    ccomPersistent_t call = nullptr;
    const auto init = [&](const char* collective, const void* send, ccomRedOp_t op, int root) {
      return ccomPersistentInit(&call, collective, send, &data, 1, ccomFloat32, op, root, comm);
    };
    EXPECT_EQ(init("allreduce", nullptr, ccomSum, 0), ccomInvalidArgument);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("ccomPersistentInit: send is NULL"));
    EXPECT_EQ(init("broadcast", &data, ccomSum, 2), ccomInvalidArgument);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("root is 2"));
    EXPECT_EQ(init("allreduce", &data, ccomBand, 0), ccomInvalidArgument);
    EXPECT_EQ(init("allgatherv", &data, ccomSum, 0), ccomInvalidArgument);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("unknown collective 'allgatherv'"));
    EXPECT_EQ(init(nullptr, &data, ccomSum, 0), ccomInvalidArgument);
    EXPECT_EQ(call, nullptr);
    EXPECT_EQ(ccomPersistentInit(nullptr, "barrier", nullptr, nullptr, 0, ccomInt8, ccomSum, 0, comm),
              ccomInvalidArgument);
    EXPECT_EQ(ccomPersistentStart(nullptr, nullptr), ccomInvalidArgument);
    EXPECT_OK(ccomPersistentFree(nullptr));
  });
}

TEST(Persistent, SaysThatItsCommunicatorIsGone) {
  with_ranks(2, [](int, ccomComm_t comm) {
    ccomComm_t part = nullptr;
    ASSERT_OK(ccomCommSplit(comm, 0, 0, &part, nullptr));
    float data = 1;
    Persistent call("allreduce", &data, &data, size_t{1}, ccomFloat32, ccomSum, 0, part);
    ASSERT_OK(call.start());
    ASSERT_OK(ccomCommDestroy(part));
    EXPECT_EQ(call.start(), ccomInvalidUsage);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("ccomPersistentStart: the communicator of the persistent call was "
                                                     "destroyed"));
  });
}

// The error is the call's, and names what the ranks have done.
TEST(Persistent, IsNamedInAMismatch) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    std::array<float, 2> data{};
    const size_t count = rank == 0 ? 1 : 2;
    Persistent call("allreduce", data.data(), data.data(), count, ccomFloat32, ccomSum, 0, comm);
    EXPECT_EQ(call.start(), ccomMismatch);
    EXPECT_THAT(ccomGetLastError(comm), HasSubstr("count 2"));
    EXPECT_EQ(call.start(), ccomMismatch);
  });
}

}  // namespace
}  // namespace ccom
