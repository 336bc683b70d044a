// SPDX-License-Identifier: Apache-2.0
//
// Sends, receives and messages between ranks that share no link of an imposed fabric: that they arrive, in order and
// whatever the ranks between do; that many at once do not block each other; and what is refused.

#include <algorithm>
#include <fstream>
#include <latch>

#include "tests/harness/folder.h"
#include "tests/messages/ranks.h"

namespace ccom {
namespace {

struct Fabric {
  const char* topology;
  int ranks;
  const char* transport = nullptr;
};
void PrintTo(const Fabric& fabric, std::ostream* out) { *out << fabric.topology << " " << fabric.ranks; }

void on(const Fabric& fabric, bool messages, const RankBody& run, int64_t timeout_ms = 60000) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.topology = fabric.topology;
  config.transport = fabric.transport;
  config.messages = messages ? 1 : 0;
  config.timeoutMs = timeout_ms;
  with_ranks(fabric.ranks, &config, run);
}

uint32_t value(int from, int to, size_t i) {
  return static_cast<uint32_t>(from * 1000003 + to * 10007) + static_cast<uint32_t>(i);
}

// Every rank sends to every other one and receives, in one group.
void exchange_all(int rank, int nranks, ccomComm_t comm, size_t count) {
  const auto n = static_cast<size_t>(nranks);
  std::vector<std::vector<uint32_t>> sent(n, std::vector<uint32_t>(count)), got(n, std::vector<uint32_t>(count));
  EXPECT_OK(ccomGroupStart());
  for (int peer = 0; peer < nranks; ++peer) {
    if (peer == rank) continue;
    const auto p = static_cast<size_t>(peer);
    for (size_t i = 0; i < count; ++i) sent[p][i] = value(rank, peer, i);
    EXPECT_OK(ccomSend(sent[p].data(), count, ccomUint32, peer, comm, nullptr));
    EXPECT_OK(ccomRecv(got[p].data(), count, ccomUint32, peer, comm, nullptr));
  }
  EXPECT_OK(ccomGroupEnd());
  for (int peer = 0; peer < nranks; ++peer) {
    if (peer == rank) continue;
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += got[static_cast<size_t>(peer)][i] == value(peer, rank, i) ? 0 : 1;
    EXPECT_EQ(wrong, 0U) << "from " << peer << " to " << rank;
  }
}

class Forwarding : public testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(On, Forwarding,
                         testing::Values(Fabric{"ring:5", 5}, Fabric{"torus:3x3", 9}, Fabric{"chain:6", 6},
                                         Fabric{"torus:2x3x4", 24}, Fabric{"torus:4x4", 11}, Fabric{"ring:6", 6, "tcp"},
                                         Fabric{"inf2.24xlarge", 12}));

TEST_P(Forwarding, CarriesSendsBetweenAllRanks) {
  const Fabric fabric = GetParam();
  on(fabric, false, [&](int rank, ccomComm_t comm) {
    for (const size_t count : {0, 1, 300, 5000, 50001}) exchange_all(rank, fabric.ranks, comm, count);
    uint32_t sum = 1;  // beside collectives
    EXPECT_OK(ccomAllReduce(&sum, &sum, 1, ccomUint32, ccomSum, comm, nullptr));
    EXPECT_EQ(sum, static_cast<uint32_t>(fabric.ranks));
    exchange_all(rank, fabric.ranks, comm, 77);
  });
}

TEST(ForwardingRank, NeedNotBeInACall) {
  std::latch done(2);
  on({"ring:5", 5}, false, [&](int rank, ccomComm_t comm) {
    std::vector<uint32_t> data(200000, static_cast<uint32_t>(rank));
    for (int turn = 0; turn < 20; ++turn) {
      ccomResult_t result = ccomSuccess;
      if (rank == 0) result = ccomSend(data.data(), data.size(), ccomUint32, 2, comm, nullptr);
      if (rank == 2) result = ccomRecv(data.data(), data.size(), ccomUint32, 0, comm, nullptr);
      EXPECT_OK(result);
    }
    EXPECT_EQ(data.back(), rank == 2 ? 0U : static_cast<uint32_t>(rank));
    if (rank == 0 || rank == 2) done.count_down();
    done.wait();  // 1, 3 and 4 do nothing but this
  });
}

TEST(ForwardingRank, GoesOnAfterItsCommunicatorWasDestroyed) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.topology = "ring:5";
  std::vector<ccomComm_t> comms(5);
  ASSERT_OK(ccomCommInitAll(comms.data(), 5, &config));
  for (const size_t gone : {size_t{1}, size_t{3}, size_t{4}}) EXPECT_OK(ccomCommDestroy(comms[gone]));
  std::vector<uint32_t> data(100000, 7), got(100000);
  std::thread sends([&] { EXPECT_OK(ccomSend(data.data(), data.size(), ccomUint32, 2, comms[0], nullptr)); });
  EXPECT_OK(ccomRecv(got.data(), got.size(), ccomUint32, 0, comms[2], nullptr));
  sends.join();
  EXPECT_EQ(got, data);
  EXPECT_OK(ccomCommDestroy(comms[0]));
  EXPECT_OK(ccomCommDestroy(comms[2]));
}

// More than all buffers together hold, all at once, every rank to the one farthest away and in both directions.
TEST(ForwardingRank, NeverWaitsForItself) {
  for (const Fabric fabric : {Fabric{"ring:8", 8}, Fabric{"torus:4x4", 16}}) {
    on(fabric, true, [&](int rank, ccomComm_t comm) {
      constexpr size_t kBytes = 1 << 20;
      constexpr int kEach = 6;
      std::vector<int> peers;
      for (int peer = 0; peer < fabric.ranks; ++peer) {
        if (peer != rank) peers.push_back(peer);
      }
      std::vector<std::vector<uint8_t>> got;
      const std::vector<uint8_t> sent(kBytes, static_cast<uint8_t>(rank + 1));
      std::vector<ccomMessage_t> messages;
      got.reserve(peers.size());
      const size_t each = fabric.ranks > 8 ? 2 : kEach;
      for (size_t i = 0; i < each; ++i) {
        for (const int peer : peers) {
          if (i == 0) got.emplace_back(kBytes * each);
          const auto at = static_cast<size_t>(peer - (peer > rank ? 1 : 0));
          messages.push_back(send(sent.data(), kBytes, peer, 5, comm));
          messages.push_back(receive(got[at].data() + i * kBytes, kBytes, peer, 5, comm));
        }
      }
      for (ccomMessage_t message : messages) finish(message);
      for (const int peer : peers) {
        const std::vector<uint8_t>& from = got[static_cast<size_t>(peer - (peer > rank ? 1 : 0))];
        EXPECT_EQ(std::ranges::count(from, static_cast<uint8_t>(peer + 1)), static_cast<ptrdiff_t>(from.size()));
      }
    });
  }
}

TEST(ForwardingRank, CarriesMessagesWithTagsInOrderFromAnyRank) {
  on({"chain:5", 5}, true, [&](int rank, ccomComm_t comm) {
    constexpr int kCount = 200;
    if (rank == 4) {
      std::vector<int> next(5);
      for (int i = 0; i < 4 * kCount; ++i) {
        int got = -1;
        const int from = finish(receive(&got, sizeof got, CCOM_ANY_RANK, 3, comm));
        ASSERT_GE(from, 0);
        EXPECT_EQ(got, next[static_cast<size_t>(from)]++) << from;
      }
      return;
    }
    for (int i = 0; i < kCount; ++i) finish(send(&i, sizeof i, 4, 3, comm));
  });
}

// A receive of the user's for any tag that a send could have is not met by it.
TEST(ForwardingRank, TellsSendsAndMessagesApart) {
  on({"ring:5", 5}, true, [&](int rank, ccomComm_t comm) {
    int first = 10, second = 20;
    if (rank == 0) {
      EXPECT_OK(ccomSend(&first, 1, ccomInt32, 2, comm, nullptr));
      finish(send(&second, sizeof second, 2, 1, comm));
    }
    if (rank == 2) {
      int got = 0;
      finish(receive(&got, sizeof got, CCOM_ANY_RANK, 1, comm));
      EXPECT_EQ(got, 20);
      EXPECT_OK(ccomRecv(&got, 1, ccomInt32, 0, comm, nullptr));
      EXPECT_EQ(got, 10);
    }
  });
}

TEST(ForwardingRank, OtherCountsOrTypesAreAMismatchOfBothRanks) {
  for (const bool is_type : {false, true}) {
    on({"ring:5", 5}, false, [&](int rank, ccomComm_t comm) {
      std::vector<float> data(20000);
      if (rank != 0 && rank != 2) return;
      const ccomResult_t result =
          rank == 0 ? ccomSend(data.data(), 5000, ccomFloat32, 2, comm, nullptr)
                    : ccomRecv(data.data(), is_type ? 5000 : 5001, is_type ? ccomInt32 : ccomFloat32, 0, comm, nullptr);
      EXPECT_EQ(result, ccomMismatch) << rank;
      EXPECT_THAT(error_text(),
                  HasSubstr(is_type ? "rank 0 sends 5000 float32 to rank 2, which receives 5000 int32"
                                    : "rank 0 sends 5000 float32 to rank 2, which receives 5001 float32"));
    });
  }
}

TEST(ForwardingRank, AReceiveThatNobodyMeetsTimesOut) {
  on(
      {"ring:5", 5}, false,
      [&](int rank, ccomComm_t comm) {
        if (rank != 2) return;
        float data = 0;
        EXPECT_EQ(ccomRecv(&data, 1, ccomFloat32, 0, comm, nullptr), ccomTimeout) << error_text();
      },
      300);
}

// The middle of a chain is the third device, on which there is no rank.
TEST(ForwardingRank, IsMissingWhereNoWayLeads) {
  const TemporaryFolder folder;
  const std::string name = folder / "split.json";
  std::ofstream(name) << R"({"name": "split", "devices": 3, "links": [[0, 2, 1500, 5e10], [1, 2, 1500, 5e10], )"
                      << R"([2, 0, 1500, 5e10], [2, 1, 1500, 5e10]]})";
  on({name.c_str(), 2}, true, [&](int rank, ccomComm_t comm) {
    int data = 0;
    EXPECT_ERROR(ccomSend(&data, 1, ccomInt32, 1 - rank, comm, nullptr), ccomNotSupported,
                 "share no link of the imposed topology, and no ranks join them");
    EXPECT_EQ(ccomMessageSend(&data, 4, 1 - rank, 1, comm, nullptr, nullptr, nullptr), ccomNotSupported);
  });
  on({name.c_str(), 3}, false, [&](int rank, ccomComm_t comm) { exchange_all(rank, 3, comm, 1000); });
}

TEST(ForwardingRank, MessagesNeedTheirSettingHereToo) {
  on({"ring:5", 5}, false, [&](int rank, ccomComm_t comm) {
    if (rank != 0) return;
    int data = 0;
    EXPECT_EQ(ccomMessageSend(&data, 4, 2, 1, comm, nullptr, nullptr, nullptr), ccomInvalidUsage) << error_text();
  });
}

}  // namespace
}  // namespace ccom
