// SPDX-License-Identifier: Apache-2.0
//
// Determinism "full": a reduction has the same bits whatever the hosts that its ranks are on, their placement, the
// transport, fabric, algorithm, size, collective and place of the buffers: ((x0 + x1) + x2) ..., which is worked out
// here for float32, float64 and bfloat16, and held against the results of ranks on one host for the other types.
// Elements differ in their exponents, so that other groupings have other bits, which "shape" shows.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include "tests/api/worlds.h"

namespace ccom {
namespace {

using Bytes = std::vector<unsigned char>;

// A floating type by its parts. Of complex types each half is one.
struct Format {
  ccomDataType_t type;
  size_t bytes;
  int exponent_bits, mantissa_bits;
  size_t parts = 1;
  bool is_complex() const { return parts == 2; }
};
constexpr std::array kFormats = {Format{ccomFloat32, 4, 8, 23},     Format{ccomFloat64, 8, 11, 52},
                                 Format{ccomBfloat16, 2, 8, 7},     Format{ccomFloat16, 2, 5, 10},
                                 Format{ccomFloat8e4m3, 1, 4, 3},   Format{ccomFloat8e5m2, 1, 5, 2},
                                 Format{ccomComplex64, 8, 8, 23, 2}};

// Elements of a rank: of either sign, around one, with exponents from -4 to 3.
Bytes input_of(const Format& format, int rank, size_t count) {
  std::mt19937_64 random(static_cast<uint64_t>(rank) * 1000003 + static_cast<uint64_t>(format.type));
  const size_t part_bytes = format.bytes / format.parts;
  const uint64_t bias = (uint64_t{1} << (format.exponent_bits - 1)) - 1;
  Bytes bytes(count * format.bytes);
  for (size_t part = 0; part < count * format.parts; ++part) {
    const uint64_t drawn = random();
    uint64_t bits = (bias + drawn % 8 - 4) << format.mantissa_bits;
    bits |= (drawn >> 8) & ((uint64_t{1} << format.mantissa_bits) - 1);
    bits |= (drawn >> 7 & 1) << (format.exponent_bits + format.mantissa_bits);
    std::memcpy(&bytes[part * part_bytes], &bits, part_bytes);
  }
  return bytes;
}

// ---- What the results must be ----

float widened(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
// To nearest, ties to even; of finite numbers.
uint16_t narrowed(float value) {
  uint32_t wide = 0;
  std::memcpy(&wide, &value, sizeof wide);
  return static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

template <typename Wide>
Wide combined(ccomRedOp_t op, const std::vector<Wide>& values) {
  Wide result = values[0];
  for (size_t i = 1; i < values.size(); ++i) result = op == ccomProd ? result * values[i] : result + values[i];
  return op == ccomAvg ? result / static_cast<Wide>(values.size()) : result;
}

template <typename Stored, typename Wide, typename From, typename To>
Bytes expected(const Format& format, ccomRedOp_t op, int ranks, size_t count, From from, To to) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < ranks; ++rank) inputs.push_back(input_of(format, rank, count));
  Bytes result(count * format.bytes);
  for (size_t i = 0; i < count; ++i) {
    std::vector<Wide> values;
    for (const Bytes& input : inputs) {
      Stored stored{};
      std::memcpy(&stored, &input[i * sizeof stored], sizeof stored);
      values.push_back(from(stored));
    }
    const Stored stored = ranks == 1 ? to(values[0]) : to(combined(op, values));
    std::memcpy(&result[i * sizeof stored], &stored, sizeof stored);
  }
  return result;
}

// Nothing where only another world can tell.
Bytes worked_out(const Format& format, ccomRedOp_t op, int ranks, size_t count) {
  const auto same = [](auto value) { return value; };
  switch (format.type) {
    case ccomFloat32: return expected<float, float>(format, op, ranks, count, same, same);
    case ccomFloat64: return expected<double, double>(format, op, ranks, count, same, same);
    case ccomBfloat16: return expected<uint16_t, float>(format, op, ranks, count, widened, narrowed);
    default: return {};
  }
}

// ---- Calls ----

// Results by type, operator and count: those worked out, else those of the first world that was asked.
class Results {
 public:
  explicit Results(int ranks) : ranks_(ranks) {
    for (const Format& format : kFormats) {
      for (const ccomRedOp_t op : operators(format)) {
        for (const size_t count : kCounts) wanted_[{format.type, op, count}] = worked_out(format, op, ranks, count);
      }
    }
  }
  // Multiples of the ranks, so that reduce-scatter has the same elements.
  static constexpr std::array<size_t, 3> kCounts = {2520, 2520 * 7, 2520 * 63};
  static std::vector<ccomRedOp_t> operators(const Format& format) {
    return format.is_complex() ? std::vector<ccomRedOp_t>{ccomSum, ccomProd}
                               : std::vector<ccomRedOp_t>{ccomSum, ccomProd, ccomAvg};
  }

  // Of one world. Long calls of two types' sums alone.
  void check(const World& world) {
    std::vector<std::map<Key, Bytes>> found(static_cast<size_t>(ranks_));
    with_ranks(world, [&](int rank, ccomComm_t comm) {
      for (const auto& [key, wanted] : wanted_) {
        if (std::get<2>(key) > kCounts[1] && !is_long(key)) continue;
        call_all(key, rank, comm, found[static_cast<size_t>(rank)][key]);
      }
    });
    for (const auto& results : found) {
      for (const auto& [key, result] : results) {
        Bytes& wanted = wanted_[key];
        if (wanted.empty()) wanted = result;
        EXPECT_TRUE(result == wanted) << world.name << ", " << ranks_ << " ranks, type " << std::get<0>(key)
                                      << ", operator " << std::get<1>(key) << ", count " << std::get<2>(key);
      }
    }
  }

 private:
  using Key = std::tuple<ccomDataType_t, ccomRedOp_t, size_t>;

  static bool is_long(const Key& key) {
    return std::get<1>(key) == ccomSum && (std::get<0>(key) == ccomFloat32 || std::get<0>(key) == ccomBfloat16);
  }
  static const Format& format_of(ccomDataType_t type) { return *std::ranges::find(kFormats, type, &Format::type); }

  // All reductions, in place and not: they must agree.
  void call_all(const Key& key, int rank, ccomComm_t comm, Bytes& result) const {
    const auto& [type, op, count] = key;
    const Format& format = format_of(type);
    const Bytes send = input_of(format, rank, count);
    result.resize(send.size());
    ASSERT_OK(ccomAllReduce(send.data(), result.data(), count, type, op, comm, nullptr));
    Bytes own = send;
    ASSERT_OK(ccomAllReduce(own.data(), own.data(), count, type, op, comm, nullptr));
    EXPECT_TRUE(own == result) << "allreduce in place";
    const int root = ranks_ / 2;
    Bytes reduced(rank == root ? send.size() : 0);
    ASSERT_OK(ccomReduce(send.data(), reduced.data(), count, type, op, root, comm, nullptr));
    EXPECT_TRUE(rank != root || reduced == result) << "reduce";
    const size_t unit = count / static_cast<size_t>(ranks_), unit_bytes = unit * format.bytes;
    const auto begin = result.begin() + static_cast<std::ptrdiff_t>(unit_bytes) * rank;
    Bytes part(unit_bytes);
    ASSERT_OK(ccomReduceScatter(send.data(), part.data(), unit, type, op, comm, nullptr));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), begin)) << "reduce-scatter";
    own = send;
    unsigned char* const place = own.data() + unit_bytes * static_cast<size_t>(rank);
    ASSERT_OK(ccomReduceScatter(own.data(), place, unit, type, op, comm, nullptr));
    EXPECT_TRUE(std::equal(place, place + unit_bytes, begin)) << "reduce-scatter in place";
    check_prefixes(format, op, rank, comm, result);
  }

  // Odd counts: the bits of an element do not depend on how many there are.
  void check_prefixes(const Format& format, ccomRedOp_t op, int rank, ccomComm_t comm, const Bytes& whole) const {
    const size_t count = whole.size() / format.bytes;
    if (count != kCounts[0]) return;
    for (const size_t odd : {size_t{1}, size_t{3}, size_t{127}, size_t{1031}}) {
      Bytes own = input_of(format, rank, odd);
      ASSERT_OK(ccomAllReduce(own.data(), own.data(), odd, format.type, op, comm, nullptr));
      EXPECT_TRUE(std::equal(own.begin(), own.end(), whole.begin())) << odd << " elements, type " << format.type;
    }
  }

  const int ranks_;
  std::map<Key, Bytes> wanted_;
};

template <typename HostOf>
std::vector<int> placed(int ranks, HostOf host_of) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(host_of(rank));
  return hosts;
}

std::vector<World> worlds_of(int n) {
  const auto one = placed(n, [](int) { return 0; });
  std::vector<World> worlds{{"memory", one}, {"tcp", one, "tcp"}};
  if (n < 2) return worlds;
  const auto halves = placed(n, [n](int rank) { return rank < n / 2 ? 0 : 1; });
  worlds.push_back({"two hosts", halves});
  worlds.push_back({"hosts in turn", placed(n, [](int rank) { return rank % 2; })});
  worlds.push_back({"three hosts", placed(n, [n](int rank) { return rank == 0 ? 2 : rank < n - 1 ? 0 : 1; })});
  worlds.push_back({"mixed", placed(n, [](int rank) { return (rank * 5 + 1) % 7 % 3; })});
  worlds.push_back({"a host each", placed(n, [](int rank) { return rank; })});
  return worlds;
}

class FullDeterminism : public testing::TestWithParam<int> {};

TEST_P(FullDeterminism, HasTheSameBitsEverywhere) {
  Results results(GetParam());
  for (World world : worlds_of(GetParam())) {
    world.determinism = "full";
    results.check(world);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, FullDeterminism, testing::Range(1, 10));

TEST(FullDeterminism, HasTheSameBitsByEveryAlgorithmAndOnFabrics) {
  const std::vector<int> hosts = {0, 0, 1, 1, 1, 0}, one(6, 0);
  Results results(6);
  for (const char* algorithm : {"allreduce:one_shot", "allreduce:two_shot,reduce:star,reduce_scatter:direct",
                                "gather_tree", "allreduce:hierarchical_direct,reduce:hierarchical_direct"}) {
    results.check({algorithm, hosts, nullptr, nullptr, algorithm, "full"});
  }
  results.check({"node", one, nullptr, nullptr, "node", "full"});
  for (const char* fabric : {"ring:6", "torus:2x3"}) results.check({fabric, one, nullptr, fabric, nullptr, "full"});
}

// What is expected can tell groupings apart, and the default groups by hosts.
TEST(ShapeDeterminism, HasOtherBitsOnOtherHosts) {
  const Bytes wanted = worked_out(kFormats[0], ccomSum, 4, 2520);
  int differ = 0;
  with_ranks({"hosts in turn", {0, 1, 0, 1}}, [&](int rank, ccomComm_t comm) {
    Bytes own = input_of(kFormats[0], rank, 2520);
    ASSERT_OK(ccomAllReduce(own.data(), own.data(), 2520, ccomFloat32, ccomSum, comm, nullptr));
    if (rank == 0) differ = own == wanted ? 0 : 1;
  });
  EXPECT_EQ(differ, 1);
}

extern "C" ccomResult_t add(const void* in, void* inout, size_t count, ccomDataType_t, void*) {
  for (size_t i = 0; i < count; ++i) static_cast<float*>(inout)[i] += static_cast<const float*>(in)[i];
  return ccomSuccess;
}

TEST(FullDeterminism, HoldsForOperatorsOfUsersAndPremultipliedSums) {
  constexpr size_t kCount = 20011;
  const Format& format = kFormats[0];
  std::vector<Bytes> wanted;  // of the first world: by an operator that commutes, one that does not, a scaled sum
  for (World world : worlds_of(5)) {
    world.determinism = "full";
    std::vector<std::vector<Bytes>> results(5);
    with_ranks(world, [&](int rank, ccomComm_t comm) {
      const Bytes send = input_of(format, rank, kCount);
      Bytes recv(send.size());
      std::vector<Bytes>& own = results[static_cast<size_t>(rank)];
      for (const ccomRedOpOrder_t order : {ccomRedOpCommutative, ccomRedOpOrdered}) {
        const ccomRedOp_t op = new_operator(add, nullptr, order, comm);
        ASSERT_OK(ccomAllReduce(send.data(), recv.data(), kCount, ccomFloat32, op, comm, nullptr));
        EXPECT_OK(ccomRedOpDestroy(op, comm));
        own.push_back(recv);
      }
      float third = 1.0F / 3;
      ccomRedOp_t op = 0;
      ASSERT_OK(ccomRedOpCreatePreMulSum(&op, &third, ccomFloat32, ccomScalarHostImmediate, comm));
      ASSERT_OK(ccomAllReduce(send.data(), recv.data(), kCount, ccomFloat32, op, comm, nullptr));
      EXPECT_OK(ccomRedOpDestroy(op, comm));
      own.push_back(recv);
    });
    if (wanted.empty()) wanted = results[0];
    for (const std::vector<Bytes>& result : results) EXPECT_TRUE(result == wanted) << world.name;
  }
}

// What sums on the way is refused by name where bits would depend on it, and nowhere else.
TEST(FullDeterminism, RefusesAlgorithmsThatSumOnTheWay) {
  with_ranks({"ring", {0, 0, 0, 1}, nullptr, nullptr, "allreduce:ring", "full"}, [](int, ccomComm_t comm) {
    std::vector<float> x(5000, 1);
    std::vector<int32_t> integers(5000, 1);
    EXPECT_ERROR(ccomAllReduce(x.data(), x.data(), x.size(), ccomFloat32, ccomSum, comm, nullptr), ccomNotSupported,
                 "as determinism=full asks");
    EXPECT_OK(ccomAllReduce(integers.data(), integers.data(), 5000, ccomInt32, ccomSum, comm, nullptr));
    EXPECT_EQ(integers[4999], 4);
    EXPECT_OK(ccomAllReduce(x.data(), x.data(), x.size(), ccomFloat32, ccomMax, comm, nullptr));
  });
}

TEST(FullDeterminism, RefusesNonsenseAndDifferentSettings) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.determinism = "absolute";
  ccomComm_t comm = nullptr;
  EXPECT_ERROR(ccomCommInitAll(&comm, 1, &config), ccomConfigError, "'absolute' is unknown; there are shape and full");
  expect_disagreement([](int rank, ccomConfig_t& own) { own.determinism = rank == 0 ? "shape" : "full"; },
                      "CCOM_DETERMINISM (full against shape)");
}

}  // namespace
}  // namespace ccom
