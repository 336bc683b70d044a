// SPDX-License-Identifier: Apache-2.0
//
// Operators of users that fail or are used wrongly: a failure or an exception on one rank is the call's error on all
// ranks and names the rank, whatever moves the data; different operators on different ranks are a mismatch; an
// algorithm that would change the order is refused, and nothing else happens.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/api/affine.h"
#include "tests/api/worlds.h"

namespace ccom {
namespace {

enum class Way { Returns, Throws, ThrowsNumber };

// A function that composes maps, but fails on one rank from its k-th call on.
struct Failing {
  Way way = Way::Returns;
  bool fails = false;
  int good_calls = 0;
  int calls_after = 0;
  bool has_failed = false;
};

ccomResult_t fail(const void* in, void* inout, size_t count, ccomDataType_t type, void* context) {
  auto& failing = *static_cast<Failing*>(context);
  if (failing.has_failed) ++failing.calls_after;
  if (!failing.fails || failing.good_calls-- > 0) return compose_maps(in, inout, count, type, nullptr);
  failing.has_failed = true;
  if (failing.way == Way::Throws) throw std::runtime_error("division by zero");
  if (failing.way == Way::ThrowsNumber) throw 7;
  return ccomInvalidUsage;
}

const char* reason(Way way) {
  switch (way) {
    case Way::Returns: return "rank 0: user operator 1 returned 5";
    case Way::Throws: return "rank 0: user operator 1 threw an exception: division by zero";
    default: return "rank 0: user operator 1 threw an exception";
  }
}

class FailingOperators : public testing::TestWithParam<World> {};

// Rank 0 combines something in every program.
void expect_error_on_all_ranks(const World& world, size_t count, Way way, int good_calls) {
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    Failing failing{.way = way, .fails = rank == 0, .good_calls = good_calls};
    const ccomRedOp_t op = new_operator(fail, &failing, ccomRedOpOrdered, comm);
    std::vector<Affine> data = maps_of(rank, count);
    EXPECT_EQ(ccomAllReduce(data.data(), data.data(), count, ccomUint64, op, comm, nullptr), ccomOperatorError)
        << "rank " << rank << ": " << ccomGetLastError(nullptr);
    const ccomErrorInfo_t info = error_info(comm);
    EXPECT_EQ(info.result, ccomOperatorError);
    EXPECT_THAT(info.text, HasSubstr(reason(way)));
    EXPECT_STREQ(info.operation, "allreduce");
    EXPECT_EQ(info.sequence, 1U);
    ASSERT_EQ(info.nPeers, 1);
    EXPECT_EQ(info.peers[0], 0);
    int sum = 1;
    EXPECT_EQ(ccomAllReduce(&sum, &sum, 1, ccomInt32, ccomSum, comm, nullptr), ccomOperatorError) << "it is final";
    EXPECT_EQ(failing.calls_after, 0);
  });
}

TEST_P(FailingOperators, AreAnErrorOfTheCallOnAllRanks) {
  for (const size_t count : {size_t{1}, size_t{1000}, size_t{200003}}) {
    expect_error_on_all_ranks(GetParam(), count, Way::Returns, 0);
  }
  expect_error_on_all_ranks(GetParam(), 200003, Way::Returns, 3);
}

TEST_P(FailingOperators, MayThrow) {
  expect_error_on_all_ranks(GetParam(), 1, Way::Throws, 0);
  expect_error_on_all_ranks(GetParam(), 50021, Way::Throws, 0);
  expect_error_on_all_ranks(GetParam(), 50021, Way::ThrowsNumber, 0);
}

// Senders have done their part before the root fails.
TEST_P(FailingOperators, AreHeardOfByRanksThatOnlyGive) {
  const World& world = GetParam();
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    const int root = world.ranks() - 1;
    Failing failing{.fails = true};
    const ccomRedOp_t op = new_operator(fail, &failing, ccomRedOpOrdered, comm);
    const Affine send = map_of(rank, 0);
    Affine recv{};
    EXPECT_EQ(ccomReduce(&send, &recv, 1, ccomUint64, op, root, comm, nullptr), ccomOperatorError) << "rank " << rank;
  });
}

std::vector<World> worlds_of_several() {
  std::vector<World> all = worlds();
  std::erase_if(all, [](const World& world) { return world.ranks() == 1; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Worlds, FailingOperators, testing::ValuesIn(worlds_of_several()),
                         [](const auto& of) { return of.param.name; });

// Of three ranks the last one calls with `odd`, the others with `usual`.
enum class Which { First, Second, Commutative, Sum };

void expect_mismatch(const World& world, Which usual, Which odd, const char* text) {
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    const ccomRedOp_t first = new_operator(compose_maps, nullptr, ccomRedOpOrdered, comm);
    const ccomRedOp_t second = new_operator(compose_maps, nullptr, ccomRedOpOrdered, comm);
    const ccomRedOp_t commutative = new_operator(compose_maps, nullptr, ccomRedOpCommutative, comm);
    const ccomRedOp_t ops[] = {first, second, commutative, ccomSum};
    std::vector<Affine> data = maps_of(rank, 3);
    const ccomRedOp_t op = ops[static_cast<size_t>(rank == 2 ? odd : usual)];
    EXPECT_EQ(ccomAllReduce(data.data(), data.data(), 3, ccomUint64, op, comm, nullptr), ccomMismatch);
    EXPECT_THAT(ccomGetLastError(comm), HasSubstr(text));
  });
}

TEST(DifferentOperators, AreAMismatch) {
  for (const World& world : {World{"memory", {0, 0, 0}}, World{"hosts", {0, 0, 1}}, World{"tcp", {0, 0, 0}, "tcp"}}) {
    expect_mismatch(world, Which::First, Which::Second, "ordered user operator 2");
    expect_mismatch(world, Which::First, Which::Commutative, "user operator 3");
    expect_mismatch(world, Which::First, Which::Sum, "uint64 sum");
    expect_mismatch(world, Which::Sum, Which::First, "ordered user operator 1");
  }
}

TEST(OrderedOperators, RefuseAlgorithmsThatChangeTheOrder) {
  const World world{"ring", {0, 0, 0}, nullptr, nullptr, "allreduce:ring"};
  with_ranks(world, [](int rank, ccomComm_t comm) {
    const ccomRedOp_t ordered = new_operator(compose_maps, nullptr, ccomRedOpOrdered, comm);
    const ccomRedOp_t commutative = new_operator(compose_maps, nullptr, ccomRedOpCommutative, comm);
    std::vector<Affine> data = maps_of(rank, 100), sums(100);
    EXPECT_ERROR(ccomAllReduce(data.data(), data.data(), 100, ccomUint64, ordered, comm, nullptr), ccomNotSupported,
                 "rank order");
    EXPECT_EQ(data, maps_of(rank, 100));
    EXPECT_OK(ccomAllReduce(data.data(), sums.data(), 100, ccomUint64, commutative, comm, nullptr));
    EXPECT_OK(ccomReduce(data.data(), data.data(), 100, ccomUint64, ordered, 1, comm, nullptr));
    EXPECT_EQ(data, rank == 1 ? all_composed(3, 0, 100) : maps_of(rank, 100));
  });
}

TEST(OperatorArguments, AreChecked) {
  with_ranks({"one", {0}}, [](int, ccomComm_t comm) {
    ccomRedOp_t op = 0;
    EXPECT_EQ(ccomRedOpCreate(nullptr, compose_maps, nullptr, ccomRedOpOrdered, comm), ccomInvalidArgument);
    EXPECT_EQ(ccomRedOpCreate(&op, nullptr, nullptr, ccomRedOpOrdered, comm), ccomInvalidArgument);
    EXPECT_EQ(ccomRedOpCreate(&op, compose_maps, nullptr, static_cast<ccomRedOpOrder_t>(2), comm), ccomInvalidArgument);
    EXPECT_EQ(ccomRedOpCreate(&op, compose_maps, nullptr, ccomRedOpOrdered, nullptr), ccomInvalidArgument);
    uint64_t x = 1;
    for (const int number : {16, 17})
      EXPECT_EQ(ccomAllReduce(&x, &x, 1, ccomUint64, number, comm, nullptr), ccomInvalidArgument);
  });
}

}  // namespace
}  // namespace ccom
