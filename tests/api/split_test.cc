// SPDX-License-Identifier: Apache-2.0
//
// ccomCommSplit, ranks as threads, on one host and on several: who is in which part, in which order, that parts work
// beside each other and outlive what they are parts of, and that what fails in a part stays there.
#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/resources.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

// Ranks 0, 1 and 2 on one host, 3 and 4 on another, and so on; hosts 0: all on one.
void with_hosts(int nranks, int hosts, bool messages, const RankBody& run) {
  World world{.messages = messages};
  for (int rank = 0; rank < nranks; ++rank) world.hosts.push_back(rank * hosts / nranks);
  with_ranks(world, run);
}

ccomComm_t split(ccomComm_t comm, int color, int key, const ccomConfig_t* config = nullptr) {
  ccomComm_t part = nullptr;
  EXPECT_OK(ccomCommSplit(comm, color, key, &part, config));
  return part;
}

// A sum that only those ranks have, of several tiles.
void check_sum(ccomComm_t part, int rank, const std::vector<int>& members, size_t count) {
  std::vector<int32_t> send(count), recv(count);
  for (size_t i = 0; i < count; ++i) send[i] = static_cast<int32_t>(i) + 1000 * rank;
  ASSERT_OK(ccomAllReduce(send.data(), recv.data(), count, ccomInt32, ccomSum, part, nullptr));
  const int ranks = static_cast<int>(members.size()),
            offset = 1000 * std::accumulate(members.begin(), members.end(), 0);
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(recv[i], static_cast<int32_t>(i) * ranks + offset) << i;
}

struct Place {
  int ranks, hosts;
  bool messages;
};
class Splits : public testing::TestWithParam<Place> {};

TEST_P(Splits, OrderRanksByKeyAndThenByRank) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const ccomComm_t odd_and_even = split(comm, rank % 2, -rank);
    std::vector<int> expected;
    for (int other = n - 1; other >= 0; --other)
      if (other % 2 == rank % 2) expected.push_back(other);
    ASSERT_NE(odd_and_even, nullptr);
    EXPECT_EQ(gathered(odd_and_even, rank), expected);
    std::vector<int> told(expected.size(), -2);
    EXPECT_OK(ccomCommGetParentRanks(odd_and_even, told.data()));
    EXPECT_EQ(told, expected);
    EXPECT_EQ(expected[static_cast<size_t>(rank_in(odd_and_even))], rank);
    for (const size_t count : {size_t{1}, size_t{1000}, size_t{300000}}) check_sum(odd_and_even, rank, expected, count);
    const ccomComm_t all = split(comm, 7, 0);
    EXPECT_EQ(gathered(all, rank), first_ranks(n)) << "equal keys";
    EXPECT_OK(ccomCommDestroy(all));
    EXPECT_OK(ccomCommDestroy(odd_and_even));
  });
}

TEST_P(Splits, LeaveOutWhoHasNoColor) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const bool is_last = rank == n - 1;
    const ccomComm_t part = split(comm, is_last ? CCOM_SPLIT_NOCOLOR : 0, 0);
    EXPECT_EQ(part == nullptr, is_last);
    if (part != nullptr) {
      EXPECT_EQ(ranks_of(part), n - 1);
    }
    const ccomComm_t alone = split(comm, rank, 0);
    check_sum(alone, rank, {rank}, 10);
    check_sum(comm, rank, first_ranks(n), 10);
    EXPECT_OK(ccomCommDestroy(part));
    EXPECT_OK(ccomCommDestroy(alone));
  });
}

TEST_P(Splits, OfPartsOutliveTheWhole) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const ccomComm_t whole = split(comm, 0, 0);
    const ccomComm_t part = split(whole, rank == 0 ? CCOM_SPLIT_NOCOLOR : 1, 0);
    EXPECT_OK(ccomCommDestroy(whole));
    if (rank == 0) return;
    std::vector<int> members(static_cast<size_t>(n - 1));
    std::iota(members.begin(), members.end(), 1);
    for (int i = 0; i < 20; ++i) check_sum(part, rank, members, 5000);
    const ccomComm_t again = split(part, 0, -rank);
    EXPECT_OK(ccomCommDestroy(part));
    std::ranges::reverse(members);
    EXPECT_EQ(gathered(again, rank), members);
    EXPECT_OK(ccomCommDestroy(again));
  });
}

// Other threads use the whole and the part at the same time.
TEST_P(Splits, WorkBesideTheWhole) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const ccomComm_t part = split(comm, rank < 2 ? 0 : 1, 0);
    std::vector<int> members;
    for (const int other : first_ranks(n))
      if ((other < 2) == (rank < 2)) members.push_back(other);
    std::thread beside([&] {
      for (int i = 0; i < 50; ++i) check_sum(part, rank, members, 3000);
    });
    for (int i = 0; i < 50; ++i) check_sum(comm, rank, first_ranks(n), 3000);
    beside.join();
    EXPECT_OK(ccomCommDestroy(part));
  });
}

// Members alone make it, in an order of their own, while the others make other calls with each other.
TEST_P(Splits, OfListedRanksNeedNoOthers) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const int members[] = {n - 1, 0};
    if (rank == members[0] || rank == members[1]) {
      ccomComm_t part = nullptr;
      for (int times = 0; times < 3; ++times) {
        ASSERT_OK(ccomCommCreateGroup(comm, members, 2, &part, nullptr));
        EXPECT_EQ(gathered(part, rank), std::vector<int>({n - 1, 0}));
        check_sum(part, rank, {0, n - 1}, 3000);
        EXPECT_OK(ccomCommDestroy(part));
      }
    }
    check_sum(comm, rank, first_ranks(n), 1000);
  });
}

TEST_P(Splits, KeepAnErrorOfAPartToIt) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const ccomComm_t part = split(comm, 0, 0), other = split(comm, 0, 0);
    if (rank == 0) {
      EXPECT_OK(ccomCommAbort(part));
    }
    float value = 1, sum = 0;
    ccomResult_t result = ccomSuccess;
    while (result == ccomSuccess) result = ccomAllReduce(&value, &sum, 1, ccomFloat32, ccomSum, part, nullptr);
    EXPECT_EQ(result, ccomAborted);
    check_sum(comm, rank, first_ranks(n), 1000);
    check_sum(other, rank, first_ranks(n), 1000);
    EXPECT_OK(ccomCommDestroy(part));
    EXPECT_OK(ccomCommDestroy(other));
  });
}

TEST_P(Splits, CarryMessagesIfTheWholeDoes) {
  const auto [ranks, hosts, messages] = GetParam();
  if (!messages) return;
  with_hosts(ranks, hosts, messages, [](int rank, ccomComm_t comm) {
    const ccomComm_t part = split(comm, 0, -rank);
    const int self = rank_in(part), n = ranks_of(part);
    int32_t sent = rank, received = -1;
    ccomMessage_t out = nullptr, in = nullptr;
    ASSERT_OK(ccomMessageSend(&sent, sizeof sent, (self + 1) % n, 5, part, nullptr, nullptr, &out));
    ASSERT_OK(ccomMessageRecv(&received, sizeof received, (self + n - 1) % n, 5, part, nullptr, nullptr, &in));
    EXPECT_OK(ccomMessageWait(in, 60000, nullptr));
    EXPECT_OK(ccomMessageWait(out, 60000, nullptr));
    EXPECT_EQ(received, (rank + 1) % n);
    EXPECT_OK(ccomMessageFree(in));
    EXPECT_OK(ccomMessageFree(out));
    EXPECT_OK(ccomCommDestroy(part));
  });
}

INSTANTIATE_TEST_SUITE_P(Machines, Splits,
                         testing::Values(Place{2, 0, false}, Place{5, 0, true}, Place{5, 2, false}, Place{4, 4, true},
                                         Place{6, 2, true}),
                         [](const auto& test) {
                           return std::to_string(test.param.ranks) + "on" + std::to_string(test.param.hosts) +
                                  (test.param.messages ? "messages" : "");
                         });

TEST(Split, TakesNoDescriptorOnOneHost) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    std::vector<ccomComm_t> parts{split(comm, 0, 0)};
    const int before = open_descriptors();
    for (int i = 0; i < 50; ++i) parts.push_back(split(comm, rank % 2, 0));
    float value = 1, sum = 0;  // nobody is between two splits
    EXPECT_OK(ccomAllReduce(&value, &sum, 1, ccomFloat32, ccomSum, comm, nullptr));
    EXPECT_LE(open_descriptors(), before + 3) << "but for those of another thread that counts";
    for (const ccomComm_t part : parts) EXPECT_OK(ccomCommDestroy(part));
  });
}

// Memory of parts that have ended serves those that come.
TEST(Split, GivesMemoryBack) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
  with_ranks(2, [&](int rank, ccomComm_t comm) {
    size_t before = 0;
    for (int i = 0; i < 300; ++i) {
      const ccomComm_t part = split(comm, 0, 0);
      check_sum(part, rank, {0, 1}, 100000);
      EXPECT_OK(ccomCommDestroy(part));
      if (i == 100) before = resident_bytes();
    }
    EXPECT_LT(resident_bytes(), before + (20 << 20)) << "200 parts that staged megabytes each";
  });
}

// One thread splits the communicators of all ranks.
TEST(Split, WorksInAGroup) {
  std::vector<ccomComm_t> comms(3), parts(3);
  ASSERT_OK(ccomCommInitAll(comms.data(), 3, nullptr));
  ASSERT_OK(ccomGroupStart());
  for (size_t i = 0; i < 3; ++i)
    ASSERT_OK(ccomCommSplit(comms[i], i == 1 ? CCOM_SPLIT_NOCOLOR : 3, 0, &parts[i], nullptr));
  ASSERT_OK(ccomGroupEnd());
  EXPECT_EQ(parts[1], nullptr);
  EXPECT_EQ(rank_in(parts[2]), 1);
  for (const ccomComm_t comm : comms) EXPECT_OK(ccomCommDestroy(comm));
  for (const ccomComm_t part : parts) EXPECT_OK(ccomCommDestroy(part));
}

// They took their places in the order of threads: rows were paired with columns.
TEST(Split, InAGroupKeepsTheOrderOfSeveral) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    for (int times = 0; times < 10; ++times) {
      ccomComm_t row = nullptr, column = nullptr;
      ASSERT_OK(ccomGroupStart());
      ASSERT_OK(ccomCommSplit(comm, rank / 2, 0, &row, nullptr));
      ASSERT_OK(ccomCommSplit(comm, rank % 2, 0, &column, nullptr));
      ASSERT_OK(ccomGroupEnd());
      EXPECT_EQ(gathered(row, rank), std::vector<int>({rank / 2 * 2, rank / 2 * 2 + 1}));
      EXPECT_EQ(gathered(column, rank), std::vector<int>({rank % 2, rank % 2 + 2}));
      EXPECT_OK(ccomCommDestroy(row));
      EXPECT_OK(ccomCommDestroy(column));
    }
  });
}

// On all ranks at once: some waited for ranks that had returned.
TEST(Split, OfRanksWithoutLinksIsRefused) {
  with_ranks({.hosts = std::vector<int>(6), .topology = "ring:6"}, [](int rank, ccomComm_t comm) {
    ccomComm_t part = nullptr;
    EXPECT_ERROR(ccomCommSplit(comm, 0, 0, &part, nullptr), ccomNotSupported,
                 "share no link of the imposed topology ring:6");
    const ccomComm_t pair = split(comm, rank / 2, 0);
    check_sum(pair, rank, {rank / 2 * 2, rank / 2 * 2 + 1}, 100000);
    EXPECT_OK(ccomCommDestroy(pair));
  });
}

TEST(Split, SaysWhoWantsOtherSettings) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.maxMemory = rank == 2 ? 64 << 20 : 128 << 20;
    ccomComm_t part = comm;
    EXPECT_ERROR(ccomCommSplit(comm, 0, 0, &part, &config), ccomConfigError,
                 "rank 2 splits with another config than rank 0");
    EXPECT_EQ(part, nullptr);
    config.maxMemory = 64 << 20;
    const ccomComm_t right = split(comm, 0, 0, &config);
    check_sum(right, rank, {0, 1, 2}, 1000);
    EXPECT_OK(ccomCommDestroy(right));
  });
}

TEST(Split, SaysWhoListsOtherRanks) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    const int two[] = {0, 1}, other[] = {1, 0}, outside[] = {0, 3}, twice[] = {0, 0};
    ccomComm_t part = nullptr;
    if (rank < 2) {
      EXPECT_ERROR(ccomCommCreateGroup(comm, rank == 0 ? two : other, 2, &part, nullptr), ccomConfigError,
                   "a group of other ranks than rank");
    } else {
      EXPECT_EQ(ccomCommCreateGroup(comm, two, 2, &part, nullptr), ccomInvalidArgument) << "not a member";
    }
    EXPECT_EQ(ccomCommCreateGroup(comm, outside, 2, &part, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomCommCreateGroup(comm, twice, 2, &part, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomCommCreateGroup(comm, nullptr, 1, &part, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomCommCreateGroup(comm, two, 0, &part, nullptr), ccomInvalidArgument);
    EXPECT_EQ(part, nullptr);
    check_sum(comm, rank, {0, 1, 2}, 100);
  });
}

TEST(Split, RefusesBadArguments) {
  with_ranks(1, [](int, ccomComm_t comm) {
    ccomComm_t part = nullptr;
    EXPECT_EQ(ccomCommSplit(comm, -2, 0, &part, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomCommSplit(comm, 0, 0, nullptr, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomCommSplit(nullptr, 0, 0, &part, nullptr), ccomInvalidArgument);
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.transport = "tcp";
    EXPECT_ERROR(ccomCommSplit(comm, 0, 0, &part, &config), ccomInvalidArgument, "config.transport differs");
    EXPECT_OK(ccomCommFinalize(comm));
    EXPECT_EQ(ccomCommSplit(comm, 0, 0, &part, nullptr), ccomInvalidUsage);
    EXPECT_EQ(part, nullptr);
  });
}

}  // namespace
}  // namespace ccom
