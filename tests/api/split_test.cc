// SPDX-License-Identifier: Apache-2.0
//
// ccomCommSplit, ranks as threads, on one host and on several: who is in which part, in which order, that parts work
// beside each other and outlive what they are parts of, and that what fails in a part stays there.
#include <ccom/ccom.h>
#include <dirent.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

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
  EXPECT_EQ(ccomCommSplit(comm, color, key, &part, config), ccomSuccess) << ccomGetLastError(nullptr);
  return part;
}

int rank_in(ccomComm_t comm) {
  int rank = -1;
  EXPECT_EQ(ccomCommUserRank(comm, &rank), ccomSuccess);
  return rank;
}
int ranks_of(ccomComm_t comm) {
  int count = -1;
  EXPECT_EQ(ccomCommCount(comm, &count), ccomSuccess);
  return count;
}

// The ranks that the members of a part have elsewhere, by their ranks in the part.
std::vector<int> gathered(ccomComm_t part, int rank) {
  std::vector<int> all(static_cast<size_t>(ranks_of(part)), -1);
  EXPECT_EQ(ccomAllGather(&rank, all.data(), 1, ccomInt32, part, nullptr), ccomSuccess) << ccomGetLastError(part);
  return all;
}

// A sum that only those ranks have, of several tiles.
void check_sum(ccomComm_t part, int rank, const std::vector<int>& members, size_t count) {
  std::vector<int32_t> send(count), recv(count);
  for (size_t i = 0; i < count; ++i) send[i] = static_cast<int32_t>(i) + 1000 * rank;
  ASSERT_EQ(ccomAllReduce(send.data(), recv.data(), count, ccomInt32, ccomSum, part, nullptr), ccomSuccess)
      << ccomGetLastError(part);
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
    EXPECT_EQ(ccomCommGetParentRanks(odd_and_even, told.data()), ccomSuccess);
    EXPECT_EQ(told, expected);
    EXPECT_EQ(expected[static_cast<size_t>(rank_in(odd_and_even))], rank);
    for (const size_t count : {size_t{1}, size_t{1000}, size_t{300000}}) check_sum(odd_and_even, rank, expected, count);
    const ccomComm_t all = split(comm, 7, 0);
    std::vector<int> in_order(static_cast<size_t>(n));
    std::iota(in_order.begin(), in_order.end(), 0);
    EXPECT_EQ(gathered(all, rank), in_order) << "equal keys";
    EXPECT_EQ(ccomCommDestroy(all), ccomSuccess);
    EXPECT_EQ(ccomCommDestroy(odd_and_even), ccomSuccess);
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
    std::vector<int> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    check_sum(comm, rank, all, 10);
    EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
    EXPECT_EQ(ccomCommDestroy(alone), ccomSuccess);
  });
}

TEST_P(Splits, OfPartsOutliveTheWhole) {
  const auto [ranks, hosts, messages] = GetParam();
  ccomUniqueId id;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess);
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const ccomComm_t whole = split(comm, 0, 0);
    const ccomComm_t part = split(whole, rank == 0 ? CCOM_SPLIT_NOCOLOR : 1, 0);
    EXPECT_EQ(ccomCommDestroy(whole), ccomSuccess);
    if (rank == 0) return;
    std::vector<int> members(static_cast<size_t>(n - 1));
    std::iota(members.begin(), members.end(), 1);
    for (int i = 0; i < 20; ++i) check_sum(part, rank, members, 5000);
    const ccomComm_t again = split(part, 0, -rank);
    EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
    std::ranges::reverse(members);
    EXPECT_EQ(gathered(again, rank), members);
    EXPECT_EQ(ccomCommDestroy(again), ccomSuccess);
  });
}

// Other threads use the whole and the part at the same time.
TEST_P(Splits, WorkBesideTheWhole) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const ccomComm_t part = split(comm, rank < 2 ? 0 : 1, 0);
    std::vector<int> members, all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    for (const int other : all)
      if ((other < 2) == (rank < 2)) members.push_back(other);
    std::thread beside([&] {
      for (int i = 0; i < 50; ++i) check_sum(part, rank, members, 3000);
    });
    for (int i = 0; i < 50; ++i) check_sum(comm, rank, all, 3000);
    beside.join();
    EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
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
        ASSERT_EQ(ccomCommCreateGroup(comm, members, 2, &part, nullptr), ccomSuccess) << ccomGetLastError(nullptr);
        EXPECT_EQ(gathered(part, rank), std::vector<int>({n - 1, 0}));
        check_sum(part, rank, {0, n - 1}, 3000);
        EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
      }
    }
    std::vector<int> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    check_sum(comm, rank, all, 1000);
  });
}

TEST_P(Splits, KeepAnErrorOfAPartToIt) {
  const auto [ranks, hosts, messages] = GetParam();
  with_hosts(ranks, hosts, messages, [n = ranks](int rank, ccomComm_t comm) {
    const ccomComm_t part = split(comm, 0, 0), other = split(comm, 0, 0);
    if (rank == 0) {
      EXPECT_EQ(ccomCommAbort(part), ccomSuccess);
    }
    float value = 1, sum = 0;
    ccomResult_t result = ccomSuccess;
    while (result == ccomSuccess) result = ccomAllReduce(&value, &sum, 1, ccomFloat32, ccomSum, part, nullptr);
    EXPECT_EQ(result, ccomAborted);
    std::vector<int> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    check_sum(comm, rank, all, 1000);
    check_sum(other, rank, all, 1000);
    EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
    EXPECT_EQ(ccomCommDestroy(other), ccomSuccess);
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
    ASSERT_EQ(ccomMessageSend(&sent, sizeof sent, (self + 1) % n, 5, part, nullptr, nullptr, &out), ccomSuccess);
    ASSERT_EQ(ccomMessageRecv(&received, sizeof received, (self + n - 1) % n, 5, part, nullptr, nullptr, &in),
              ccomSuccess);
    EXPECT_EQ(ccomMessageWait(in, 60000, nullptr), ccomSuccess);
    EXPECT_EQ(ccomMessageWait(out, 60000, nullptr), ccomSuccess);
    EXPECT_EQ(received, (rank + 1) % n);
    EXPECT_EQ(ccomMessageFree(in), ccomSuccess);
    EXPECT_EQ(ccomMessageFree(out), ccomSuccess);
    EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
  });
}

INSTANTIATE_TEST_SUITE_P(Machines, Splits,
                         testing::Values(Place{2, 0, false}, Place{5, 0, true}, Place{5, 2, false}, Place{4, 4, true},
                                         Place{6, 2, true}),
                         [](const auto& test) {
                           return std::to_string(test.param.ranks) + "on" + std::to_string(test.param.hosts) +
                                  (test.param.messages ? "messages" : "");
                         });

size_t open_descriptors() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(Split, TakesNoDescriptorOnOneHost) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    std::vector<ccomComm_t> parts{split(comm, 0, 0)};
    const size_t before = open_descriptors();
    for (int i = 0; i < 50; ++i) parts.push_back(split(comm, rank % 2, 0));
    float value = 1, sum = 0;  // nobody is between two splits
    EXPECT_EQ(ccomAllReduce(&value, &sum, 1, ccomFloat32, ccomSum, comm, nullptr), ccomSuccess);
    EXPECT_LE(open_descriptors(), before + 3) << "but for those of another thread that counts";
    for (const ccomComm_t part : parts) EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
  });
}

// Memory of parts that have ended serves those that come.
TEST(Split, GivesMemoryBack) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
  const auto resident = [] {
    long pages = 0, shared = 0, all = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    EXPECT_EQ(fscanf(file, "%ld %ld %ld", &all, &pages, &shared), 3);
    fclose(file);
    return pages * 4096;
  };
  with_ranks(2, [&](int rank, ccomComm_t comm) {
    long before = 0;
    for (int i = 0; i < 300; ++i) {
      const ccomComm_t part = split(comm, 0, 0);
      check_sum(part, rank, {0, 1}, 100000);
      EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
      if (i == 100) before = resident();
    }
    EXPECT_LT(resident(), before + (20 << 20)) << "200 parts that staged megabytes each";
  });
}

// One thread splits the communicators of all ranks.
TEST(Split, WorksInAGroup) {
  std::vector<ccomComm_t> comms(3), parts(3);
  ASSERT_EQ(ccomCommInitAll(comms.data(), 3, nullptr), ccomSuccess);
  ASSERT_EQ(ccomGroupStart(), ccomSuccess);
  for (size_t i = 0; i < 3; ++i)
    ASSERT_EQ(ccomCommSplit(comms[i], i == 1 ? CCOM_SPLIT_NOCOLOR : 3, 0, &parts[i], nullptr), ccomSuccess);
  ASSERT_EQ(ccomGroupEnd(), ccomSuccess) << ccomGetLastError(nullptr);
  EXPECT_EQ(parts[1], nullptr);
  EXPECT_EQ(rank_in(parts[2]), 1);
  for (const ccomComm_t comm : comms) EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
  for (const ccomComm_t part : parts) EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
}

// They took their places in the order of threads: rows were paired with columns.
TEST(Split, InAGroupKeepsTheOrderOfSeveral) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    for (int times = 0; times < 10; ++times) {
      ccomComm_t row = nullptr, column = nullptr;
      ASSERT_EQ(ccomGroupStart(), ccomSuccess);
      ASSERT_EQ(ccomCommSplit(comm, rank / 2, 0, &row, nullptr), ccomSuccess);
      ASSERT_EQ(ccomCommSplit(comm, rank % 2, 0, &column, nullptr), ccomSuccess);
      ASSERT_EQ(ccomGroupEnd(), ccomSuccess) << ccomGetLastError(nullptr);
      EXPECT_EQ(gathered(row, rank), std::vector<int>({rank / 2 * 2, rank / 2 * 2 + 1}));
      EXPECT_EQ(gathered(column, rank), std::vector<int>({rank % 2, rank % 2 + 2}));
      EXPECT_EQ(ccomCommDestroy(row), ccomSuccess);
      EXPECT_EQ(ccomCommDestroy(column), ccomSuccess);
    }
  });
}

// On all ranks at once: some waited for ranks that had returned.
TEST(Split, OfRanksWithoutLinksIsRefused) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.topology = "ring:6";
  with_ranks(6, &config, [](int rank, ccomComm_t comm) {
    ccomComm_t part = nullptr;
    EXPECT_EQ(ccomCommSplit(comm, 0, 0, &part, nullptr), ccomNotSupported);
    EXPECT_NE(std::string(ccomGetLastError(nullptr)).find("share no link of the imposed topology ring:6"),
              std::string::npos)
        << ccomGetLastError(nullptr);
    const ccomComm_t pair = split(comm, rank / 2, 0);
    check_sum(pair, rank, {rank / 2 * 2, rank / 2 * 2 + 1}, 100000);
    EXPECT_EQ(ccomCommDestroy(pair), ccomSuccess);
  });
}

TEST(Split, SaysWhoWantsOtherSettings) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.maxMemory = rank == 2 ? 64 << 20 : 128 << 20;
    ccomComm_t part = comm;
    EXPECT_EQ(ccomCommSplit(comm, 0, 0, &part, &config), ccomConfigError);
    EXPECT_NE(std::string(ccomGetLastError(nullptr)).find("rank 2 splits with another config than rank 0"),
              std::string::npos)
        << ccomGetLastError(nullptr);
    EXPECT_EQ(part, nullptr);
    config.maxMemory = 64 << 20;
    const ccomComm_t right = split(comm, 0, 0, &config);
    check_sum(right, rank, {0, 1, 2}, 1000);
    EXPECT_EQ(ccomCommDestroy(right), ccomSuccess);
  });
}

TEST(Split, SaysWhoListsOtherRanks) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    const int two[] = {0, 1}, other[] = {1, 0}, outside[] = {0, 3}, twice[] = {0, 0};
    ccomComm_t part = nullptr;
    if (rank < 2) {
      EXPECT_EQ(ccomCommCreateGroup(comm, rank == 0 ? two : other, 2, &part, nullptr), ccomConfigError);
      EXPECT_NE(std::string(ccomGetLastError(nullptr)).find("a group of other ranks than rank"), std::string::npos)
          << ccomGetLastError(nullptr);
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
    EXPECT_EQ(ccomCommSplit(comm, 0, 0, &part, &config), ccomInvalidArgument);
    EXPECT_NE(std::string(ccomGetLastError(nullptr)).find("config.transport differs"), std::string::npos);
    EXPECT_EQ(ccomCommFinalize(comm), ccomSuccess);
    EXPECT_EQ(ccomCommSplit(comm, 0, 0, &part, nullptr), ccomInvalidUsage);
    EXPECT_EQ(part, nullptr);
  });
}

}  // namespace
}  // namespace ccom
