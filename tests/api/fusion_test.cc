// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring small collectives of a group run as one where their results have the same bits: of every type and
// operator, every collective, on hosts, transports and fabrics of many forms they are those of separate calls; calls
// that need one another's results get them; and what is fused is seen by the number of the next call.
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <random>

#include "tests/api/worlds.h"

namespace ccom {
namespace {

constexpr ccomDataType_t kTypes[] = {ccomInt8,       ccomUint8,      ccomInt32,   ccomUint32,  ccomInt64,
                                     ccomUint64,     ccomFloat16,    ccomFloat32, ccomFloat64, ccomBfloat16,
                                     ccomFloat8e4m3, ccomFloat8e5m2, ccomInt16,   ccomUint16,  ccomBool,
                                     ccomComplex64,  ccomComplex128};
constexpr size_t kCounts[] = {3, 1, 0, 17, 40, 2, 5};

size_t bytes_of(ccomDataType_t type) {
  switch (type) {
    case ccomInt8:
    case ccomUint8:
    case ccomBool:
    case ccomFloat8e4m3:
    case ccomFloat8e5m2: return 1;
    case ccomInt16:
    case ccomUint16:
    case ccomFloat16:
    case ccomBfloat16: return 2;
    case ccomInt64:
    case ccomUint64:
    case ccomFloat64:
    case ccomComplex64: return 8;
    case ccomComplex128: return 16;
    default: return 4;
  }
}

bool is_legal(ccomDataType_t type, int op) {
  const bool is_integer = type <= ccomUint64 || type == ccomInt16 || type == ccomUint16;
  const bool is_complex = type == ccomComplex64 || type == ccomComplex128;
  if (op <= ccomProd) return true;
  if (op == ccomAvg) return type != ccomBool;
  if (op <= ccomMin) return !is_complex;
  return is_integer || type == ccomBool;
}

// Any bits: also NaNs, infinities and denormals. Bool: 0 and 1.
std::vector<uint8_t> any_bits(std::mt19937& random, ccomDataType_t type, size_t count) {
  std::vector<uint8_t> bits(count * bytes_of(type) + 1);
  for (uint8_t& byte : bits) byte = static_cast<uint8_t>(type == ccomBool ? random() & 1 : random());
  return bits;
}

// One call of a group or alone.
struct Call {
  std::vector<uint8_t> send, recv;
  size_t count;
};

using Make = std::function<ccomResult_t(const Call& call, void* recv)>;

std::vector<Call> make_calls(int rank, ccomDataType_t type, size_t units) {
  std::mt19937 random(static_cast<unsigned>(rank * 100 + type));
  std::vector<Call> calls;
  for (const size_t count : kCounts) {
    const size_t bytes = count * units * bytes_of(type) + 1;
    calls.push_back({any_bits(random, type, count * units), std::vector<uint8_t>(bytes, 7), count});
  }
  return calls;
}

void expect_same(int rank, ccomDataType_t type, size_t units, const std::string& what, const Make& make) {
  std::vector<Call> alone = make_calls(rank, type, units), together = alone;
  for (Call& call : alone) ASSERT_OK(make(call, call.recv.data())) << what;
  ASSERT_OK(ccomGroupStart());
  for (Call& call : together) ASSERT_OK(make(call, call.recv.data())) << what;
  ASSERT_OK(ccomGroupEnd()) << what;
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i].recv, together[i].recv) << what << ", call " << i;
}

class Fusion : public testing::TestWithParam<World> {};

TEST_P(Fusion, GivesTheBitsOfSeparateCalls) {
  with_ranks(GetParam(), [](int rank, ccomComm_t comm) {
    const int n = ranks_of(comm);
    const auto units = static_cast<size_t>(n);
    for (const ccomDataType_t type : kTypes) {
      const std::string name = "type " + std::to_string(type) + ", operator ";
      for (const int op :
           {ccomSum, ccomProd, ccomMax, ccomMin, ccomAvg, ccomBand, ccomBor, ccomBxor, ccomLand, ccomLor}) {
        if (!is_legal(type, op)) continue;
        expect_same(rank, type, 1, "allreduce " + name + std::to_string(op), [&](const Call& call, void* recv) {
          return ccomAllReduce(call.send.data(), recv, call.count, type, op, comm, nullptr);
        });
        expect_same(rank, type, units, "reduce_scatter " + name + std::to_string(op),
                    [&](const Call& call, void* recv) {
                      return ccomReduceScatter(call.send.data(), recv, call.count, type, op, comm, nullptr);
                    });
        expect_same(rank, type, 1, "reduce " + name + std::to_string(op), [&](const Call& call, void* recv) {
          return ccomReduce(call.send.data(), recv, call.count, type, op, n - 1, comm, nullptr);
        });
      }
      expect_same(rank, type, units, "allgather " + name, [&](const Call& call, void* recv) {
        return ccomAllGather(call.send.data(), recv, call.count, type, comm, nullptr);
      });
      expect_same(rank, type, units, "alltoall " + name, [&](const Call& call, void* recv) {
        return ccomAlltoAll(call.send.data(), recv, call.count, type, comm, nullptr);
      });
      expect_same(rank, type, units, "broadcast " + name, [&](const Call& call, void* recv) {
        return ccomBroadcast(call.send.data(), recv, call.count, type, n - 1, comm, nullptr);
      });
      expect_same(rank, type, units, "gather " + name, [&](const Call& call, void* recv) {
        return ccomGather(call.send.data(), recv, call.count, type, 0, comm, nullptr);
      });
      expect_same(rank, type, units, "scatter " + name, [&](const Call& call, void* recv) {
        return ccomScatter(call.send.data(), recv, call.count, type, 0, comm, nullptr);
      });
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Fusion, testing::ValuesIn(worlds()), [](const auto& of) { return of.param.name; });

// The number of the next call, which ranks make differently once all have returned from their group: a mismatch ends
// whatever calls of the communicator have not returned.
uint64_t number_of_next_call(int rank, ccomComm_t comm, std::barrier<>& returned) {
  returned.arrive_and_wait();
  float value = 0, other[2] = {};
  EXPECT_EQ(ccomAllReduce(rank == 0 ? other : &value, rank == 0 ? other : &value, rank == 0 ? 2 : 1, ccomFloat32,
                          ccomSum, comm, nullptr),
            ccomMismatch);
  const ccomErrorInfo_t info = error_info(comm);
  return info.sequence;
}

class Fused : public testing::TestWithParam<World> {};

TEST_P(Fused, CallsAreOne) {
  std::barrier<> returned(GetParam().ranks());
  with_ranks(GetParam(), [&returned](int rank, ccomComm_t comm) {
    std::vector<float> all(8, 1);
    EXPECT_OK(ccomGroupStart());
    for (float& x : all) EXPECT_OK(ccomAllReduce(&x, &x, 1, ccomFloat32, ccomSum, comm, nullptr));
    EXPECT_OK(ccomGroupEnd());
    EXPECT_EQ(all, std::vector<float>(8, static_cast<float>(GetParam().ranks())));
    EXPECT_EQ(number_of_next_call(rank, comm, returned), 2U);
  });
}

// On one rank only, so that the others have to be told.
TEST_P(Fused, CallsThatNeedOneAnotherAreMadeInOrder) {
  std::barrier<> returned(GetParam().ranks());
  with_ranks(GetParam(), [&returned](int rank, ccomComm_t comm) {
    std::vector<int> x(8, 1);
    EXPECT_OK(ccomGroupStart());
    for (size_t i = 0; i < 6; ++i) {
      int* const from = rank == 1 ? &x[i] : &x[0];
      const size_t to = i + 1;
      EXPECT_OK(ccomAllReduce(from, &x[to], 1, ccomInt32, ccomSum, comm, nullptr));
    }
    EXPECT_OK(ccomGroupEnd());
    const int others = GetParam().ranks() - 1;
    int expected = 1;
    for (size_t i = 1; i <= 6; ++i) {
      expected += others;  // rank 1 gives the sum of before
      EXPECT_EQ(x[i], expected) << "rank " << rank << ", call " << i;
    }
    EXPECT_EQ(number_of_next_call(rank, comm, returned), 8U) << "one in which ranks say that they cannot, and six";
  });
}

TEST_P(Fused, CallsThatDifferBetweenRanksAreAMismatch) {
  with_ranks(GetParam(), [](int rank, ccomComm_t comm) {
    std::vector<int> x(64, 1);
    ASSERT_OK(ccomGroupStart());
    for (size_t i = 0; i < 6; ++i) {
      const size_t count = rank == 1 && (i == 2 || i == 3) ? (i == 2 ? 1 : 3) : 2;  // the same in all
      ASSERT_OK(ccomAllReduce(&x[8 * i], &x[8 * i], count, ccomInt32, ccomSum, comm, nullptr));
    }
    ASSERT_EQ(ccomGroupEnd(), ccomMismatch) << ccomGetLastError(nullptr);
    const std::string text = ccomGetLastError(comm);
    EXPECT_THAT(text, HasSubstr("rank 1: allreduce int32 sum count 1 (call 4)"));
    EXPECT_THAT(text, HasSubstr(": allreduce int32 sum count 2 (call 4)"));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Fused,
                         testing::Values(World{"one_host", {0, 0, 0}}, World{"two_hosts", {0, 0, 1, 1}},
                                         World{"hosts_of_one", {0, 1}}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace ccom
