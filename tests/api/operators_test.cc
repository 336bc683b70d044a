// SPDX-License-Identifier: Apache-2.0
//
// Operators of users give the right results: one that does not commute in rank order, and one that does, by every
// collective that reduces, in place and not, from one element to several MiB, on hosts, transports and fabrics of many
// forms; on streams and in groups, also destroyed before the call has run; and equal bits in every run.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/api/affine.h"
#include "tests/api/worlds.h"

namespace ccom {
namespace {

class Operators : public testing::TestWithParam<World> {};

// Of long calls some roots.
void expect_reductions(const World& world, size_t count) {
  with_ranks(world, [&world, count](int rank, ccomComm_t comm) {
    const int n = world.ranks();
    const auto unsigned_rank = static_cast<size_t>(rank);
    const auto unsigned_n = static_cast<size_t>(n);
    const ccomRedOp_t op = new_operator(compose_maps, nullptr, ccomRedOpOrdered, comm);
    const std::vector<Affine> send = maps_of(rank, count), expected = all_composed(n, 0, count);
    std::vector<Affine> recv(count), in_place = send;
    ASSERT_OK(ccomAllReduce(send.data(), recv.data(), count, ccomUint64, op, comm, nullptr));
    ASSERT_EQ(recv, expected) << "rank " << rank;
    ASSERT_OK(ccomAllReduce(in_place.data(), in_place.data(), count, ccomUint64, op, comm, nullptr));
    ASSERT_EQ(in_place, expected);
    for (int root = 0; root < n; ++root) {
      if (count > 10000 && root != 0 && root != n / 2 && root != n - 1) continue;
      std::vector<Affine> reduced(count), own = send;
      ASSERT_OK(ccomReduce(send.data(), reduced.data(), count, ccomUint64, op, root, comm, nullptr));
      if (rank == root) {
        ASSERT_EQ(reduced, expected) << "root " << root;
      }
      ASSERT_OK(ccomReduce(own.data(), own.data(), count, ccomUint64, op, root, comm, nullptr));
      ASSERT_EQ(own, rank == root ? expected : send) << "root " << root;
    }
    const size_t unit = count / unsigned_n + 1;
    std::vector<Affine> all = maps_of(rank, unit * unsigned_n), part(unit);
    const std::vector<Affine> wanted = all_composed(n, unit * unsigned_rank, unit);
    ASSERT_OK(ccomReduceScatter(all.data(), part.data(), unit, ccomUint64, op, comm, nullptr));
    ASSERT_EQ(part, wanted) << "rank " << rank;
    Affine* const own = all.data() + unit * unsigned_rank;
    ASSERT_OK(ccomReduceScatter(all.data(), own, unit, ccomUint64, op, comm, nullptr));
    ASSERT_EQ(std::vector<Affine>(own, own + unit), wanted);
    EXPECT_OK(ccomRedOpDestroy(op, comm));
  });
}

TEST_P(Operators, KeepRankOrderInShortCalls) {
  for (const size_t count : {0, 1, 3, 127, 1031}) expect_reductions(GetParam(), count);
}

TEST_P(Operators, KeepRankOrderInLongCalls) { expect_reductions(GetParam(), 500009); }

extern "C" ccomResult_t add_floats(const void* in, void* inout, size_t count, ccomDataType_t, void* context) {
  ++*static_cast<std::atomic<int>*>(context);
  for (size_t i = 0; i < count; ++i) static_cast<float*>(inout)[i] += static_cast<const float*>(in)[i];
  return ccomSuccess;
}

// Sums of floats, which tell one grouping from another.
TEST_P(Operators, ThatCommuteGiveTheSameBitsOnAllRanksAndInEveryRun) {
  const World& world = GetParam();
  for (const size_t count : {size_t{5}, size_t{200003}}) {
    std::vector<std::vector<float>> results(static_cast<size_t>(world.ranks()));
    with_ranks(world, [&](int rank, ccomComm_t comm) {
      std::atomic<int> calls{0};
      const ccomRedOp_t op = new_operator(add_floats, &calls, ccomRedOpCommutative, comm);
      std::vector<float> send(count), recv(count), again(count);
      double exact = 0;
      for (size_t i = 0; i < count; ++i)
        send[i] = 1.0F / static_cast<float>(i % 97 + 3 * static_cast<size_t>(rank) + 1);
      for (int r = 0; r < world.ranks(); ++r) exact += 1.0 / (3 * r + 1);
      ASSERT_OK(ccomAllReduce(send.data(), recv.data(), count, ccomFloat32, op, comm, nullptr));
      ASSERT_OK(ccomAllReduce(send.data(), again.data(), count, ccomFloat32, op, comm, nullptr));
      EXPECT_NEAR(recv[0], exact, 1e-5);
      EXPECT_EQ(recv, again);
      results[static_cast<size_t>(rank)] = recv;
      if (world.ranks() == 1) {
        EXPECT_EQ(calls, 0) << "there is nothing to combine";
      }
    });
    for (const std::vector<float>& result : results) EXPECT_EQ(result, results[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Operators, testing::ValuesIn(worlds()), [](const auto& of) { return of.param.name; });

TEST(OperatorsOnStreams, OutliveTheirHandleUntilTheCallsAreOver) {
  with_ranks({"three", {0, 0, 0}}, [](int rank, ccomComm_t comm) {
    constexpr size_t kCount = 100003;
    const ccomStream_t stream = new_stream();
    const std::vector<Affine> send = maps_of(rank, kCount);
    std::vector<std::vector<Affine>> results(5, std::vector<Affine>(kCount));
    // Holds the stream until the operator is destroyed.
    std::atomic<bool> may_go{false};
    ASSERT_OK(ccomStreamAddCallback(
        stream,
        [](void* go, ccomResult_t) {
          while (!static_cast<std::atomic<bool>*>(go)->load()) std::this_thread::yield();
        },
        &may_go));
    const ccomRedOp_t op = new_operator(compose_maps, nullptr, ccomRedOpOrdered, comm);
    for (std::vector<Affine>& recv : results)
      ASSERT_OK(ccomAllReduce(send.data(), recv.data(), kCount, ccomUint64, op, comm, stream));
    ASSERT_OK(ccomRedOpDestroy(op, comm));
    EXPECT_EQ(ccomRedOpDestroy(op, comm), ccomInvalidArgument);
    EXPECT_EQ(ccomAllReduce(send.data(), results[0].data(), kCount, ccomUint64, op, comm, stream), ccomInvalidArgument);
    may_go = true;
    EXPECT_OK(ccomStreamSynchronize(stream, -1));
    for (const std::vector<Affine>& recv : results) EXPECT_EQ(recv, all_composed(3, 0, kCount));
    EXPECT_OK(ccomStreamDestroy(stream));
  });
}

TEST(OperatorsInGroups, RunBesideOtherCalls) {
  with_ranks({"hosts", {0, 0, 1, 1}}, [](int rank, ccomComm_t comm) {
    const ccomRedOp_t op = new_operator(compose_maps, nullptr, ccomRedOpOrdered, comm);
    const std::vector<Affine> send = maps_of(rank, 5000);
    std::vector<Affine> recv(5000);
    int sum = rank, got = -1;
    ASSERT_OK(ccomGroupStart());
    ASSERT_OK(ccomAllReduce(send.data(), recv.data(), recv.size(), ccomUint64, op, comm, nullptr));
    ASSERT_OK(ccomSend(&rank, 1, ccomInt32, (rank + 1) % 4, comm, nullptr));
    ASSERT_OK(ccomRecv(&got, 1, ccomInt32, (rank + 3) % 4, comm, nullptr));
    ASSERT_OK(ccomAllReduce(&sum, &sum, 1, ccomInt32, ccomSum, comm, nullptr));
    ASSERT_OK(ccomGroupEnd());
    EXPECT_EQ(recv, all_composed(4, 0, 5000));
    EXPECT_EQ(got, (rank + 3) % 4);
    EXPECT_EQ(sum, 6);
  });
}

}  // namespace
}  // namespace ccom
