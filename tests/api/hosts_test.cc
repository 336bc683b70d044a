// SPDX-License-Identifier: Apache-2.0
//
// Collectives over two hosts of three ranks each, ranks as threads: values of every collective that goes through memory
// inside and messages across, long enough for several tiles, and equal bits of a sum on all ranks.
#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/harness/world.h"

namespace ccom {
namespace {

constexpr int kRanks = 6;

void with_hosts(const RankBody& run) { with_ranks({.hosts = hosts_in_order(kRanks, 3)}, run); }

// Element i of rank `rank`'s input.
int32_t value(int rank, size_t i) { return static_cast<int32_t>(i * 7 + static_cast<size_t>(rank) * 1000003); }
int32_t sum(size_t i) {
  int32_t total = 0;
  for (int rank = 0; rank < kRanks; ++rank) total += value(rank, i);
  return total;
}
std::vector<int32_t> values(int rank, size_t count) {
  std::vector<int32_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = value(rank, i);
  return all;
}

class Hosts : public testing::TestWithParam<size_t> {};

TEST_P(Hosts, ReduceVectorsRight) {
  const size_t count = GetParam();
  with_hosts([count](int rank, ccomComm_t comm) {
    const std::vector<int32_t> send = values(rank, count);
    std::vector<int32_t> recv(count), in_place = send;
    ASSERT_OK(ccomAllReduce(send.data(), recv.data(), count, ccomInt32, ccomSum, comm, nullptr));
    ASSERT_OK(ccomAllReduce(in_place.data(), in_place.data(), count, ccomInt32, ccomSum, comm, nullptr));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(recv[i], sum(i)) << "rank " << rank << ", element " << i;
    ASSERT_EQ(recv, in_place);
    for (const int root : {0, 4}) {
      std::vector<int32_t> reduced(count, -1), copied = rank == root ? send : std::vector<int32_t>(count);
      ASSERT_OK(ccomReduce(send.data(), reduced.data(), count, ccomInt32, ccomSum, root, comm, nullptr));
      if (rank == root) {
        ASSERT_EQ(reduced, recv);
      }
      ASSERT_OK(ccomBroadcast(copied.data(), copied.data(), count, ccomInt32, root, comm, nullptr));
      ASSERT_EQ(copied, values(root, count));
    }
  });
}

TEST_P(Hosts, MoveBlocksRight) {
  const size_t count = GetParam() / 8 + 1;
  with_hosts([count](int rank, ccomComm_t comm) {
    const std::vector<int32_t> send = values(rank, count * kRanks);
    std::vector<int32_t> part(count), all(count * kRanks);
    const size_t own = static_cast<size_t>(rank) * count;
    ASSERT_OK(ccomReduceScatter(send.data(), part.data(), count, ccomInt32, ccomSum, comm, nullptr));
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(part[i], sum(own + i)) << "rank " << rank << ", element " << i;
    ASSERT_OK(ccomAllGather(send.data(), all.data(), count, ccomInt32, comm, nullptr));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], value(static_cast<int>(i / count), i % count)) << "rank " << rank << ", element " << i;
    }
    ASSERT_OK(ccomAlltoAll(send.data(), all.data(), count, ccomInt32, comm, nullptr));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], value(static_cast<int>(i / count), own + i % count)) << "rank " << rank << ", element " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Counts, Hosts, testing::Values(0, 1, 5, 5000, 1000003));

TEST(HostsBits, AreEqualOnAllRanks) {
  constexpr size_t kCount = 300007;
  std::vector<std::vector<float>> results(kRanks, std::vector<float>(kCount));
  with_hosts([&results](int rank, ccomComm_t comm) {
    std::mt19937 random(static_cast<unsigned>(rank));
    std::normal_distribution<float> normal(0, 1000);
    std::vector<float> send(kCount);
    for (float& x : send) x = normal(random);
    float* const recv = results[static_cast<size_t>(rank)].data();
    ASSERT_OK(ccomAllReduce(send.data(), recv, kCount, ccomFloat32, ccomAvg, comm, nullptr));
  });
  for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(results[0], results[static_cast<size_t>(rank)]) << rank;
}

}  // namespace
}  // namespace ccom
