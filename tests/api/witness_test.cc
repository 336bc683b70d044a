// SPDX-License-Identifier: Apache-2.0
//
// Ranks whose results, or what they say must be equal, differ from those of most are named by the next call.
#include <cstring>
#include <vector>

#include "tests/api/worlds.h"
#include "tests/harness/environment.h"

namespace ccom {
namespace {

class Witness : public testing::TestWithParam<World> {
 protected:
  const ScopedVariable witness_{"CCOM_WITNESS", "1"};
};
class GivenData : public testing::TestWithParam<World> {};

// The same on all ranks but for a bit of one of them.
std::vector<uint32_t> almost_equal(int rank, int odd, size_t count) {
  std::vector<uint32_t> data(count);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint32_t>(i * 2654435761U);
  if (rank == odd) data[count / 2] ^= 1U << 7;
  return data;
}

std::string rest(int ranks) { return ranks == 1 ? "rank 0" : "the " + std::to_string(ranks) + " other ranks"; }

// Every rank gets the error, which names the odd one, or both where there are two.
void expect_named(ccomComm_t comm, int ranks, int odd) {
  float value = 1;
  ASSERT_EQ(ccomAllReduce(&value, &value, 1, ccomFloat32, ccomSum, comm, nullptr), ccomMismatch);
  const std::string text = ccomGetLastError(comm);
  EXPECT_THAT(text, HasSubstr("results that must be equal on all ranks differ"));
  EXPECT_THAT(text, HasSubstr("those of rank " + std::to_string(odd) + " from those of " + rest(ranks - 1)));
  EXPECT_THAT(text, HasSubstr("CCOM-E069"));
  EXPECT_EQ(text.find("none are those of most ranks") != std::string::npos, ranks == 2) << text;
}

TEST_P(GivenData, OfTheRankThatDiffersIsNamedByTheNextCall) {
  const int ranks = GetParam().ranks(), odd = ranks - 1;
  with_ranks(GetParam(), [&](int rank, ccomComm_t comm) {
    const std::vector<uint32_t> equal = almost_equal(rank, -1, 300), data = almost_equal(rank, odd, 500);
    float value = 1;
    ASSERT_OK(ccomCommWitness(equal.data(), equal.size() * 4, comm));
    for (int i = 0; i < 3; ++i) ASSERT_OK(ccomAllReduce(&value, &value, 1, ccomFloat32, ccomSum, comm, nullptr));
    ASSERT_OK(ccomCommWitness(data.data(), data.size() * 4, comm));
    expect_named(comm, ranks, odd);
  });
}

TEST_P(GivenData, OfAnyLengthIsSampledInOtherPlacesAfterEachCall) {
  constexpr size_t kCount = 8192;  // of 4 bytes, of which 2048 bytes are digested at a time
  constexpr int kMostCalls = 500;  // a bit is missed by all with a probability of (15/16)^500
  const int ranks = GetParam().ranks(), odd = 0;
  with_ranks(GetParam(), [&](int rank, ccomComm_t comm) {
    const std::vector<uint32_t> data = almost_equal(rank, odd, kCount);
    float value = 1;
    ccomResult_t result = ccomSuccess;
    for (int i = 0; i < kMostCalls && result == ccomSuccess; ++i) {
      result = ccomCommWitness(data.data(), data.size() * 4, comm);
      if (result == ccomSuccess) result = ccomAllReduce(&value, &value, 1, ccomFloat32, ccomSum, comm, nullptr);
    }
    EXPECT_EQ(result, ccomMismatch);
    if (ranks > 2) {
      EXPECT_THAT(ccomGetLastError(comm), HasSubstr("those of rank 0 from those of the"));
    }
  });
}

TEST_P(Witness, IsSilentWhereResultsAreEqual) {
  with_ranks(GetParam(), [&](int rank, ccomComm_t comm) {
    const auto ranks = static_cast<size_t>(GetParam().ranks());
    for (const size_t count : {1, 12, 1000, 50000}) {
      std::vector<float> mine(count * ranks, static_cast<float>(rank + 1) / 3), all(count * ranks);
      for (int i = 0; i < 5; ++i) {
        ASSERT_OK(ccomAllReduce(mine.data(), all.data(), count, ccomFloat32, ccomSum, comm, nullptr));
        ASSERT_OK(ccomAllGather(mine.data(), all.data(), count, ccomFloat32, comm, nullptr));
        ASSERT_OK(ccomReduceScatter(mine.data(), all.data(), count, ccomFloat32, ccomSum, comm, nullptr));
        ASSERT_OK(ccomAlltoAll(mine.data(), all.data(), count, ccomFloat32, comm, nullptr));
        ASSERT_OK(ccomBroadcast(mine.data(), all.data(), count, ccomFloat32, 0, comm, nullptr));
        ASSERT_OK(ccomReduce(mine.data(), all.data(), count, ccomFloat32, ccomSum, 0, comm, nullptr));
        ASSERT_OK(ccomGroupStart());
        for (size_t j = 0; j < 3; ++j)
          ccomAllReduce(&mine[j * count / 3], &all[j * count / 3], count / 3, ccomFloat32, ccomSum, comm, nullptr);
        ASSERT_OK(ccomGroupEnd());
      }
    }
  });
}

// A processor that computes wrongly, as far as a test can have one: it adds the least bit to what it sums.
ccomResult_t add(const void* in, void* inout, size_t count, ccomDataType_t, void* is_wrong) {
  const auto* const from = static_cast<const int32_t*>(in);
  auto* const to = static_cast<int32_t*>(inout);
  for (size_t i = 0; i < count; ++i) to[i] += from[i] + (*static_cast<const bool*>(is_wrong) ? 1 : 0);
  return ccomSuccess;
}

TEST(WitnessOfResults, NamesTheRankWhoseResultHasAnotherBit) {
  const ScopedVariable witness("CCOM_WITNESS", "1");
  constexpr int kOdd = 2;
  // Everybody sums everything.
  with_ranks({"four", {0, 0, 0, 0}}, [&](int rank, ccomComm_t comm) {
    bool is_wrong = false;
    const ccomRedOp_t op = new_operator(&add, &is_wrong, ccomRedOpCommutative, comm);
    int32_t value = rank, sum = 0;
    for (int i = 0; i < 20; ++i) ASSERT_OK(ccomAllReduce(&value, &sum, 1, ccomInt32, op, comm, nullptr));
    is_wrong = rank == kOdd;
    ASSERT_OK(ccomAllReduce(&value, &sum, 1, ccomInt32, op, comm, nullptr));
    EXPECT_EQ(sum, rank == kOdd ? 9 : 6);
    expect_named(comm, 4, kOdd);
    EXPECT_THAT(ccomGetLastError(comm), HasSubstr("(call 21)"));
    EXPECT_OK(ccomRedOpDestroy(op, comm));
  });
}

TEST(WitnessOfResults, IsOffUnlessAskedFor) {
  with_ranks({"two", {0, 0}}, [&](int rank, ccomComm_t comm) {
    bool is_wrong = rank == 1;
    const ccomRedOp_t op = new_operator(&add, &is_wrong, ccomRedOpCommutative, comm);
    int32_t value = rank, sum = 0;
    for (int i = 0; i < 3; ++i) EXPECT_OK(ccomAllReduce(&value, &sum, 1, ccomInt32, op, comm, nullptr));
    EXPECT_OK(ccomRedOpDestroy(op, comm));
  });
}

std::vector<World> several() {
  std::vector<World> all = worlds();
  std::erase_if(all, [](const World& world) { return world.ranks() < 2; });
  return all;
}
const auto name_of_world = [](const auto& world) { return std::string(world.param.name); };
INSTANTIATE_TEST_SUITE_P(Worlds, GivenData, testing::ValuesIn(several()), name_of_world);
INSTANTIATE_TEST_SUITE_P(Worlds, Witness, testing::ValuesIn(several()), name_of_world);

}  // namespace
}  // namespace ccom
