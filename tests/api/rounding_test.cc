// SPDX-License-Identifier: Apache-2.0
//
// Stochastic rounding through the C API: right on average where nearest rounding has a constant error, the same bits on
// all ranks, decided by the seed and the number of the call alone; between hosts: rounding_hosts_test.cc. Every
// element is the sum 1 + a quarter of the type's step there: nearest gives 1 always, stochastic one step more in every
// fourth case. Seeds are fixed, so that the statistics are the same in every run.
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "tests/harness/world.h"

namespace ccom {
namespace {

constexpr int kRanks = 4;

// One, and a quarter of the step to the next number, as bits.
struct Narrow {
  ccomDataType_t type;
  size_t bytes;
  uint16_t one, quarter;
};
constexpr Narrow kBfloat16{ccomBfloat16, 2, 0x3f80, 0x3b00};
constexpr Narrow kFloat16{ccomFloat16, 2, 0x3c00, 0x0c00};
constexpr Narrow kFloat8e4m3{ccomFloat8e4m3, 1, 0x38, 0x10};
constexpr Narrow kFloat8e5m2{ccomFloat8e5m2, 1, 0x3c, 0x2c};
constexpr std::array kTypes = {kBfloat16, kFloat16, kFloat8e4m3, kFloat8e5m2};

ccomConfig_t stochastic(int64_t seed) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.rounding = "stochastic";
  config.roundingSeed = seed;
  return config;
}

using Bits = std::vector<uint16_t>;

std::vector<std::byte> pack(const Bits& bits, size_t element_bytes) {
  std::vector<std::byte> memory(bits.size() * element_bytes);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&memory[i * element_bytes], &bits[i], element_bytes);
  return memory;
}

Bits unpack(const std::vector<std::byte>& memory, size_t element_bytes) {
  Bits bits(memory.size() / element_bytes);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bits[i], &memory[i * element_bytes], element_bytes);
  return bits;
}

struct Load {
  Narrow narrow = kBfloat16;
  size_t count = 1;
  int calls = 1;
};

// The results of all calls one after another, by rank.
std::vector<Bits> sums(const ccomConfig_t* config, const Load& load) {
  std::vector<Bits> results(kRanks);
  with_ranks(kRanks, config, [&](int rank, ccomComm_t comm) {
    const std::array<uint16_t, kRanks> parts = {0, load.narrow.one, 0, load.narrow.quarter};
    const auto send = pack(Bits(load.count, parts[static_cast<size_t>(rank)]), load.narrow.bytes);
    std::vector<std::byte> recv(send.size());
    Bits& own = results[static_cast<size_t>(rank)];
    for (int call = 0; call < load.calls; ++call) {
      ASSERT_OK(ccomAllReduce(send.data(), recv.data(), load.count, load.narrow.type, ccomSum, comm, nullptr));
      const Bits bits = unpack(recv, load.narrow.bytes);
      own.insert(own.end(), bits.begin(), bits.end());
    }
  });
  return results;
}

// In steps of the type above 1; all others are impossible.
double mean_steps(const Bits& bits, const Narrow& narrow) {
  double steps = 0;
  for (const uint16_t each : bits) {
    const int step = each - narrow.one;
    EXPECT_TRUE(step == 0 || step == 1) << each;
    steps += step;
  }
  return steps / static_cast<double>(bits.size());
}

TEST(StochasticRounding, IsUnbiasedWhereNearestIsNot) {
  for (const Narrow& narrow : kTypes) {
    for (const Load& load : {Load{narrow, 1, 2000}, Load{narrow, 1000, 20}, Load{narrow, 100000, 2}}) {
      const ccomConfig_t config = stochastic(11);
      const std::vector<Bits> results = sums(&config, load);
      const double samples = static_cast<double>(load.count) * load.calls;
      EXPECT_NEAR(mean_steps(results[0], narrow), 0.25, 5 * std::sqrt(0.25 * 0.75 / samples))
          << narrow.type << " " << load.count;
      for (const Bits& bits : results) EXPECT_EQ(bits, results[0]) << narrow.type << " " << load.count;
    }
    const std::vector<Bits> nearest = sums(nullptr, {narrow, 1000, 1});
    EXPECT_EQ(mean_steps(nearest[0], narrow), 0) << narrow.type;
  }
}

TEST(StochasticRounding, IsDecidedBySeedAndCall) {
  for (const size_t count : {size_t{300}, size_t{1000}, size_t{100000}}) {
    const Load load{kBfloat16, count, 2};
    const ccomConfig_t one = stochastic(1);
    const ccomConfig_t two = stochastic(2);
    const Bits first = sums(&one, load)[0];
    EXPECT_EQ(first, sums(&one, load)[0]) << count;
    EXPECT_NE(first, sums(&two, load)[0]) << count;
    const auto middle = first.begin() + static_cast<std::ptrdiff_t>(count);
    EXPECT_NE(Bits(first.begin(), middle), Bits(middle, first.end())) << "two calls round alike, count " << count;
  }
}

// The whole vector has one set of random bits, however it is cut: what ranks get by reduce and by reduce-scatter are
// parts of what they get by allreduce as the same call of an equal communicator.
TEST(StochasticRounding, IsTheSameForAllReductions) {
  for (const size_t part : {size_t{5}, size_t{1000}, size_t{30000}}) {
    const size_t count = part * kRanks;
    const ccomConfig_t config = stochastic(5);
    const Bits whole = sums(&config, {kBfloat16, count, 1})[0];
    const auto run = [&](bool scatters) {
      with_ranks(kRanks, &config, [&](int rank, ccomComm_t comm) {
        const std::array<uint16_t, kRanks> parts = {0, kBfloat16.one, 0, kBfloat16.quarter};
        const Bits send(count, parts[static_cast<size_t>(rank)]);
        Bits recv(count);
        if (scatters) {
          ASSERT_OK(ccomReduceScatter(send.data(), recv.data(), part, ccomBfloat16, ccomSum, comm, nullptr));
          const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(part) * rank;
          EXPECT_TRUE(std::equal(begin, begin + static_cast<std::ptrdiff_t>(part), recv.begin())) << part;
          return;
        }
        ASSERT_OK(ccomReduce(send.data(), recv.data(), count, ccomBfloat16, ccomSum, 2, comm, nullptr));
        EXPECT_TRUE(rank != 2 || recv == whole) << part;
      });
    };
    run(true);
    run(false);
  }
}

TEST(StochasticRounding, LeavesOtherTypesAndExactSumsAlone) {
  const ccomConfig_t config = stochastic(3);
  std::array<std::vector<float>, 2> results;
  for (const bool rounds : {false, true}) {
    with_ranks(kRanks, rounds ? &config : nullptr, [&](int rank, ccomComm_t comm) {
      std::vector<float> x(50000);
      for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) + static_cast<float>(rank));
      ASSERT_OK(ccomAllReduce(x.data(), x.data(), x.size(), ccomFloat32, ccomSum, comm, nullptr));
      if (rank == 0) results[rounds ? 1 : 0] = x;
      Bits exact(1000, kBfloat16.one);
      ASSERT_OK(ccomAllReduce(exact.data(), exact.data(), 1000, ccomBfloat16, ccomSum, comm, nullptr));
      EXPECT_EQ(exact, Bits(1000, 0x4080)) << "four";
      Bits most(1000, kBfloat16.one);
      ASSERT_OK(ccomAllReduce(most.data(), most.data(), 1000, ccomBfloat16, ccomMax, comm, nullptr));
      EXPECT_EQ(most, Bits(1000, kBfloat16.one));
    });
  }
  EXPECT_EQ(0, std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)));
}

std::string refusal(int ranks, const ccomConfig_t& config, ccomResult_t code) {
  std::vector<ccomComm_t> comms(static_cast<size_t>(ranks));
  EXPECT_EQ(ccomCommInitAll(comms.data(), ranks, &config), code) << ccomGetLastError(nullptr);
  for (ccomComm_t comm : comms) EXPECT_EQ(comm, nullptr);
  return ccomGetLastError(nullptr);
}

TEST(StochasticRounding, RefusesNonsense) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.rounding = "up";
  EXPECT_THAT(refusal(1, config, ccomConfigError), HasSubstr("'up'"));
  config = CCOM_CONFIG_INIT;
  config.roundingSeed = -2;
  EXPECT_THAT(refusal(1, config, ccomInvalidArgument), HasSubstr("roundingSeed"));
}

// Each rank by its own init, as processes do.
TEST(StochasticRounding, IsASettingThatAllRanksMustShare) {
  expect_disagreement([](int rank, ccomConfig_t& config) { config = stochastic(rank); },
                      "CCOM_ROUNDING_SEED (1 against 0)");
}

}  // namespace
}  // namespace ccom
