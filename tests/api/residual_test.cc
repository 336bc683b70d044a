// SPDX-License-Identifier: Apache-2.0
//
// ccomAllReduceResidual: the residuals of all ranks are what results are off by; zeros where nothing is encoded;
// results have the bits of ccomAllReduce, which other ranks may call meanwhile.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/api/worlds.h"

namespace ccom {
namespace {

constexpr size_t kElements = 30011;  // the last blocks are not full

std::vector<World> narrow_worlds() {
  std::vector<World> all;
  for (const char* wire : {"fp8", "int8"}) {
    for (World world : {World{"2 x 1", {0, 1}}, World{"4 x 1, tcp alone", {0, 1, 2, 3}, "tcp"},
                        World{"2 x 2", {0, 0, 1, 1}}, World{"3, 1, 2", {0, 0, 0, 1, 2, 2}},
                        World{"leaders", {0, 0, 1, 1}, nullptr, nullptr, "allreduce:hierarchical_leaders"}}) {
      world.wire = wire;
      all.push_back(world);
    }
  }
  return all;
}

constexpr double kLargest = 127;
// Every number has few enough bits that bfloat16 has them all.
std::vector<float> numbers_of(int rank, size_t count) {
  std::mt19937 random(static_cast<uint32_t>(rank) * 7919 + 1);
  std::vector<float> numbers(count);
  for (float& each : numbers) {
    const auto mantissa = static_cast<float>(static_cast<int>(random() % 255) - 127);
    each = std::ldexp(mantissa, -static_cast<int>(random() % 8));
  }
  return numbers;
}

std::vector<std::byte> packed(const std::vector<float>& numbers, ccomDataType_t type) {
  const size_t bytes = type == ccomBfloat16 ? 2 : 4;
  std::vector<std::byte> memory(numbers.size() * bytes);
  for (size_t i = 0; i < numbers.size(); ++i)
    std::memcpy(&memory[i * bytes], reinterpret_cast<const std::byte*>(&numbers[i]) + 4 - bytes, bytes);
  return memory;
}

float number_at(const std::vector<std::byte>& memory, size_t index, ccomDataType_t type) {
  const size_t bytes = type == ccomBfloat16 ? 2 : 4;
  float number = 0;
  std::memcpy(reinterpret_cast<std::byte*>(&number) + 4 - bytes, &memory[index * bytes], bytes);
  return number;
}

struct Outcome {
  std::vector<std::byte> result;                // of rank 0
  std::vector<std::vector<float>> residuals{};  // by rank
  std::vector<double> residual_sum() const {
    std::vector<double> sum(residuals[0].size());
    for (const auto& residual : residuals) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += double{residual[i]};
    }
    return sum;
  }
};

Outcome reduce_in(const World& world, ccomDataType_t type, ccomRedOp_t op, size_t count, bool in_place = false) {
  Outcome outcome;
  outcome.residuals.resize(static_cast<size_t>(world.ranks()));
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    const std::vector<std::byte> mine = packed(numbers_of(rank, count), type);
    std::vector<std::byte> send = mine, recv(send.size()), plain(send.size());
    std::vector<float> residual(count, 17);
    void* const to = in_place ? send.data() : recv.data();
    ASSERT_OK(ccomAllReduceResidual(send.data(), to, residual.data(), count, type, op, comm, nullptr));
    if (in_place) recv = send;
    // Half of the ranks ask for the residual.
    const ccomResult_t again = rank % 2 == 0 ? ccomAllReduce(mine.data(), plain.data(), count, type, op, comm, nullptr)
                                             : ccomAllReduceResidual(mine.data(), plain.data(), residual.data(), count,
                                                                     type, op, comm, nullptr);
    ASSERT_OK(again);
    EXPECT_TRUE(recv == plain) << world.name;
    if (rank == 0) outcome.result = recv;
    outcome.residuals[static_cast<size_t>(rank)] = residual;
  });
  return outcome;
}

// But for the roundings of float32, of numbers up to kLargest, and that of the result to bfloat16.
void expect_explained(const World& world, ccomDataType_t type, bool averages, const Outcome& outcome, size_t count) {
  std::vector<double> exact(count);
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const std::vector<float> own = numbers_of(rank, count);
    for (size_t i = 0; i < count; ++i) exact[i] += double{own[i]};
  }
  const std::vector<double> lost = outcome.residual_sum();
  size_t beyond = 0, lossy = 0;
  for (size_t i = 0; i < count; ++i) {
    const double result = double{number_at(outcome.result, i, type)} * (averages ? world.ranks() : 1);
    const double stored = type == ccomBfloat16 ? std::abs(result) / 256 : 0;
    if (!(std::abs(exact[i] - lost[i] - result) <= 1e-6 * kLargest * world.ranks() + stored)) ++beyond;
    if (std::abs(lost[i]) > 1e-3) ++lossy;
  }
  EXPECT_EQ(beyond, 0U) << world.name << " " << world.wire;
  EXPECT_GT(lossy, count / 10) << world.name << ": nothing was encoded";
}

TEST(Residual, OfAllRanksIsWhatTheResultIsOffBy) {
  for (const World& world : narrow_worlds()) {
    for (const ccomDataType_t type : {ccomFloat32, ccomBfloat16}) {
      const Outcome outcome = reduce_in(world, type, ccomSum, kElements);
      expect_explained(world, type, false, outcome, kElements);
      const Outcome in_place = reduce_in(world, type, ccomSum, kElements, true);
      EXPECT_TRUE(outcome.result == in_place.result && outcome.residuals == in_place.residuals) << world.name;
    }
  }
}

TEST(Residual, OfAnAverageIsThatOfTheSum) {
  for (const World& world : narrow_worlds()) {
    expect_explained(world, ccomFloat32, true, reduce_in(world, ccomFloat32, ccomAvg, kElements), kElements);
  }
}

TEST(Residual, OfLongCallsLiesAtThePlacesOfItsTiles) {
  constexpr size_t kLong = 1500077;
  for (World world : {World{"2 x 2", {0, 0, 1, 1}}, World{"2, 1", {0, 0, 1}}}) {
    world.wire = "int8";
    expect_explained(world, ccomFloat32, false, reduce_in(world, ccomFloat32, ccomSum, kLong), kLong);
  }
}

TEST(Residual, IsZeroWhereNothingIsEncoded) {
  const auto expect_zeros = [](World world, const char* wire, ccomDataType_t type, ccomRedOp_t op, size_t count) {
    world.wire = wire;
    const Outcome outcome = reduce_in(world, type, op, count);
    for (const std::vector<float>& residual : outcome.residuals)
      EXPECT_EQ(std::ranges::count(residual, 0.0F), std::ssize(residual)) << world.name << ", " << count;
  };
  const World hosts{"2 x 2", {0, 0, 1, 1}}, host{"one host", {0, 0, 0}}, one{"one rank", {0}};
  expect_zeros(hosts, "off", ccomFloat32, ccomSum, kElements);
  expect_zeros(hosts, "fp8", ccomFloat32, ccomSum, 4096);
  expect_zeros(hosts, "fp8", ccomFloat32, ccomMax, kElements);
  expect_zeros(hosts, "fp8", ccomInt32, ccomSum, kElements);
  for (const size_t count : {size_t{3}, kElements}) {
    expect_zeros(host, "int8", ccomFloat32, ccomSum, count);
    expect_zeros(one, "int8", ccomFloat32, ccomSum, count);
  }
}

// Calls that are run as one, and one that reads what the call before it writes.
TEST(Residual, IsWrittenInGroupsAndOnStreams) {
  const World world{.name = "2 x 2", .hosts = {0, 0, 1, 1}, .wire = "fp8"};
  with_ranks(world, [](int rank, ccomComm_t comm) {
    const ccomStream_t stream = new_stream();
    const std::vector<float> send = numbers_of(rank, kElements);
    std::vector<float> alone(kElements), expected(kElements), recv(kElements), residual(kElements);
    ASSERT_OK(ccomAllReduceResidual(send.data(), alone.data(), expected.data(), kElements, ccomFloat32, ccomSum, comm,
                                    nullptr));
    std::vector<float> small(8 * 10, 1), lost(8 * 10, 17);
    ASSERT_OK(ccomGroupStart());
    for (size_t i = 0; i < 80; i += 10) {
      ASSERT_OK(ccomAllReduceResidual(&small[i], &small[i], &lost[i], 10, ccomFloat32, ccomSum, comm, stream));
    }
    ASSERT_OK(ccomAllReduceResidual(send.data(), recv.data(), residual.data(), kElements, ccomFloat32, ccomSum, comm,
                                    stream));
    ASSERT_OK(ccomAllReduce(lost.data(), lost.data(), 10, ccomFloat32, ccomSum, comm, stream));
    ASSERT_OK(ccomGroupEnd());
    ASSERT_OK(ccomStreamSynchronize(stream, -1));
    EXPECT_EQ(std::ranges::count(small, 4.0F), 80);
    EXPECT_EQ(std::ranges::count(lost, 0.0F), 80);
    EXPECT_TRUE(recv == alone && residual == expected);
    EXPECT_OK(ccomStreamDestroy(stream));
  });
}

TEST(Residual, IsZeroInABlockThatIsNotFinite) {
  World world{"2 x 2", {0, 0, 1, 1}};
  for (const char* wire : {"fp8", "int8"}) {
    world.wire = wire;
    with_ranks(world, [](int rank, ccomComm_t comm) {
      std::vector<float> sums = numbers_of(rank, kElements), residual(kElements);
      if (rank == 1) sums[10000] = std::numeric_limits<float>::infinity();
      ASSERT_OK(ccomAllReduceResidual(sums.data(), sums.data(), residual.data(), kElements, ccomFloat32, ccomSum, comm,
                                      nullptr));
      EXPECT_TRUE(std::isnan(sums[10000]));
      EXPECT_TRUE(rank >= 2 || residual[10000] == 0) << "of the host with the infinity";
      EXPECT_TRUE(std::ranges::all_of(residual, [](float lost) { return std::isfinite(lost); }));
    });
  }
}

// Added to the next call, residuals keep the mean of many results near the exact sum; without them the same error
// stays.
TEST(Residual, FedBackKeepsTheMeanOfResultsExact) {
  const World world{.name = "2 x 2", .hosts = {0, 0, 1, 1}, .wire = "fp8"};
  constexpr int kCalls = 40;
  double errors[2] = {};
  for (const bool feeds_back : {false, true}) {
    with_ranks(world, [&](int rank, ccomComm_t comm) {
      const std::vector<float> own = numbers_of(rank, kElements);
      std::vector<float> send = own, recv(kElements), residual(kElements);
      std::vector<double> mean(kElements);
      for (int call = 0; call < kCalls; ++call) {
        for (size_t i = 0; feeds_back && i < kElements; ++i) send[i] = own[i] + residual[i];
        ASSERT_OK(ccomAllReduceResidual(send.data(), recv.data(), residual.data(), kElements, ccomFloat32, ccomSum,
                                        comm, nullptr));
        for (size_t i = 0; i < kElements; ++i) mean[i] += double{recv[i]} / kCalls;
      }
      if (rank != 0) return;
      for (int other = 0; other < 4; ++other) {
        const std::vector<float> numbers = numbers_of(other, kElements);
        for (size_t i = 0; i < kElements; ++i) mean[i] -= double{numbers[i]};
      }
      for (const double off : mean) errors[feeds_back ? 1 : 0] += off * off;
    });
  }
  EXPECT_LT(errors[1], errors[0] / 100) << errors[0] << " without";
}

TEST(Residual, MemoryThatIsMissingOrSharedIsAnError) {
  with_ranks({"one", {0}}, [](int, ccomComm_t comm) {
    std::vector<float> memory(30, 1);
    const auto reduce = [&](float* send, float* recv, float* residual, size_t count) {
      return ccomAllReduceResidual(send, recv, residual, count, ccomFloat32, ccomSum, comm, nullptr);
    };
    float* const at = memory.data();
    EXPECT_EQ(reduce(at, at, nullptr, 10), ccomInvalidArgument);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("residual is NULL"));
    EXPECT_OK(reduce(at, at, nullptr, 0));
    EXPECT_EQ(reduce(at, at + 10, at + 9, 10), ccomInvalidArgument);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("residual overlaps"));
    EXPECT_EQ(reduce(at, at + 10, at + 19, 10), ccomInvalidArgument);
    EXPECT_OK(reduce(at, at + 10, at + 20, 10));
    EXPECT_EQ(memory[20], 0.0F);
  });
}

}  // namespace
}  // namespace ccom
