// SPDX-License-Identifier: Apache-2.0
//
// V-forms give the right results: parts of unlike lengths, none among them, in place and not, packed and with gaps that
// differ between ranks, from a few bytes to several tiles, on hosts, transports and fabrics of many forms; on streams
// and in groups, with lists that are gone by then; and sums with the bits of the plain form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/api/v_form_calls.h"
#include "tests/api/worlds.h"

namespace ccom {
namespace {

// With algorithms that plain calls are asked to use: those of v-forms that do not have them choose their own.
std::vector<World> worlds_of_v_forms() {
  std::vector<World> all = worlds();
  all.push_back({"rings_by_messages", {0, 0, 0, 0}, "tcp", nullptr, "ring"});
  all.push_back({"circulants", {0, 0, 0, 0, 0}, "tcp", nullptr, "circulant"});
  all.push_back({"trees", {0, 0, 1, 1, 1}, nullptr, nullptr, "tree"});
  all.push_back({"leaders", {0, 0, 0, 1, 1}, nullptr, nullptr, "hierarchical_leaders"});
  all.push_back({"sharded", {0, 0, 0, 1, 1, 2, 2, 2}, nullptr, nullptr, "hierarchical_sharded"});
  all.push_back({"torus_by_name", {0, 0, 0, 0}, nullptr, "torus:2x2", "allgather:torus"});
  return all;
}

class VForms : public testing::TestWithParam<World> {};

TEST_P(VForms, GiveEverybodyItsParts) {
  with_ranks(GetParam(), [&](int rank, ccomComm_t comm) {
    for (const size_t scale : {0, 1, 50, 3000}) {
      EXPECT_EQ(VFormCalls(comm, scale, 0).run(), "");
      EXPECT_EQ(VFormCalls(comm, scale, 3).run(), "");
      EXPECT_EQ(VFormCalls(comm, scale, static_cast<size_t>(rank) + 1).run(), "");
    }
  });
}

TEST_P(VForms, GiveEverybodyItsPartsInLongCalls) {
  with_ranks(GetParam(), [&](int rank, ccomComm_t comm) {
    EXPECT_EQ(VFormCalls(comm, 150001, 0).run(), "");
    EXPECT_EQ(VFormCalls(comm, 150001, static_cast<size_t>(rank) + 1).run(), "");
  });
}

TEST_P(VForms, WithoutElementsOnlyMeet) {
  with_ranks(GetParam(), [&](int, ccomComm_t comm) {
    const int n = ranks_of(comm);
    const std::vector<size_t> none(static_cast<size_t>(n));
    const auto* const zeros = none.data();
    EXPECT_OK(ccomAllGatherV(nullptr, 0, nullptr, zeros, nullptr, ccomInt32, comm, nullptr));
    EXPECT_OK(ccomReduceScatterV(nullptr, nullptr, zeros, ccomFloat32, ccomAvg, comm, nullptr));
    EXPECT_OK(ccomGatherV(nullptr, 0, nullptr, zeros, nullptr, ccomInt32, n - 1, comm, nullptr));
    EXPECT_OK(ccomScatterV(nullptr, zeros, zeros, nullptr, 0, ccomInt32, 0, comm, nullptr));
    EXPECT_OK(ccomAlltoAllV(nullptr, zeros, nullptr, nullptr, zeros, zeros, ccomInt32, comm, nullptr));
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, VForms, testing::ValuesIn(worlds_of_v_forms()),
                         [](const auto& of) { return of.param.name; });

// Calls of equal parts run as the plain form does, also on ranks whose parts do not follow one another, in every way
// that calls try.
TEST(VFormsOfEqualParts, LieWhereEachRankWantsThem) {
  for (const size_t count : {1, 12, 300, 20000, 300000}) {
    with_ranks({"three", {0, 0, 0}}, [&](int rank, ccomComm_t comm) {
      const size_t gap = rank == 1 ? 5 : 0, calls = count < 100000 ? 60 : 8;
      const std::vector<size_t> counts(3, count), places{0, count + gap, 2 * (count + gap)};
      for (size_t call = 0; call < calls; ++call) {
        const auto own = static_cast<int32_t>(call * 3) + rank;
        std::vector<int32_t> send(count, own), recv(3 * (count + gap), -1), wanted(recv);
        for (size_t from = 0; from < 3; ++from) {
          const auto begin = wanted.begin() + static_cast<ptrdiff_t>(places[from]);
          std::fill(begin, begin + static_cast<ptrdiff_t>(count), static_cast<int32_t>(call * 3 + from));
        }
        const bool in_place = call % 2 == 1;
        int32_t* const at = recv.data() + places[static_cast<size_t>(rank)];
        if (in_place) std::ranges::copy(send, at);
        ASSERT_OK(ccomAllGatherV(in_place ? at : send.data(), count, recv.data(), counts.data(), places.data(),
                                 ccomInt32, comm, nullptr));
        ASSERT_EQ(recv, wanted) << "call " << call << " of " << count;
      }
    });
  }
}

// Integers in memory that other ranks can map, or in the heap.
class MappedOrNot {
 public:
  MappedOrNot(size_t count, bool is_mapped) : heap_(is_mapped ? 0 : count, -1) {
    if (is_mapped) {
      EXPECT_EQ(ccomMemAlloc(&mapped_, count * sizeof(int32_t)), ccomSuccess);
    }
  }
  ~MappedOrNot() {
    if (mapped_ != nullptr) {
      EXPECT_EQ(ccomMemFree(mapped_), ccomSuccess);
    }
  }
  MappedOrNot(const MappedOrNot&) = delete;
  MappedOrNot& operator=(const MappedOrNot&) = delete;
  int32_t* data() { return mapped_ != nullptr ? static_cast<int32_t*>(mapped_) : heap_.data(); }

 private:
  std::vector<int32_t> heap_;
  void* mapped_ = nullptr;
};

// An alltoallv of a rank with equal parts begins as an alltoall, and goes on as what it is.
TEST(VFormsOfEqualParts, MeetRanksWithUnlikeOnes) {
  for (const size_t count : {size_t{1}, size_t{700}, size_t{30000}, size_t{400000}}) {
    for (const int odd : {-1, 0, 2}) {  // the rank that sends another count to rank 1
      with_ranks({"three", {0, 0, 0}}, [&](int rank, ccomComm_t comm) {
        for (int call = 0; call < 12; ++call) {
          const bool is_equal = call % 4 == 0 || call > 8, in_place = call % 2 == 1;
          std::vector<size_t> sent(3, count), received(3, count);
          const size_t other = call % 3 == 0 ? 0 : count + 3;
          if (!is_equal && rank == odd) sent[1] = other;
          if (!is_equal && rank == 1 && odd >= 0) received[static_cast<size_t>(odd)] = other;
          // Of unlike parts those in memory of ccom's are read where they lie, and others are messages.
          MappedOrNot send(3 * count + 3, call % 4 >= 2), recv(3 * count + 3, false);
          std::vector<int32_t> wanted;
          size_t at = 0;
          for (size_t to = 0; to < 3; ++to) {
            for (size_t i = 0; i < sent[to]; ++i)
              send.data()[at++] = call * 1000 + rank * 10 + static_cast<int32_t>(to);
            wanted.insert(wanted.end(), received[to], call * 1000 + static_cast<int32_t>(to) * 10 + rank);
          }
          int32_t* const target = in_place ? send.data() : recv.data();
          ASSERT_OK(ccomAlltoAllV(send.data(), sent.data(), nullptr, target, received.data(), nullptr, ccomInt32, comm,
                                  nullptr));
          ASSERT_EQ(std::vector<int32_t>(target, target + wanted.size()), wanted)
              << "call " << call << " of " << count << " on rank " << rank << ", odd rank " << odd;
        }
        // What other calls have learnt about ways is still the same on all ranks.
        std::vector<float> data(100000, 1);
        for (int call = 0; call < 40; ++call)
          ASSERT_OK(ccomAllReduce(data.data(), data.data(), data.size(), ccomFloat32, ccomMax, comm, nullptr));
      });
    }
  }
}

// Which others must not read where it lies: it is overwritten meanwhile.
TEST(VFormsOfEqualParts, MayBeShortAndInPlaceOnOneRank) {
  with_ranks({"three", {0, 0, 0}}, [](int rank, ccomComm_t comm) {
    for (int call = 0; call < 20; ++call) {
      const auto part = [](int from) { return from == 0 ? size_t{4} : size_t{60000}; };
      const bool in_place = rank == 0, is_mapped = call % 2 == 0 || rank != 1;
      const std::vector<size_t> sent(3, part(rank)), received{part(0), part(1), part(2)};
      const size_t all = part(0) + part(1) + part(2);
      MappedOrNot send(std::max(all, 3 * part(rank)), is_mapped), recv(all, is_mapped);
      int32_t* const target = in_place ? send.data() : recv.data();
      for (size_t i = 0; i < 3 * part(rank); ++i)
        send.data()[i] = call * 1000 + rank * 10 + static_cast<int32_t>(i / part(rank));
      ASSERT_OK(
          ccomAlltoAllV(send.data(), sent.data(), nullptr, target, received.data(), nullptr, ccomInt32, comm, nullptr));
      size_t at = 0;
      for (int from = 0; from < 3; ++from)
        for (size_t i = 0; i < part(from); ++i, ++at)
          ASSERT_EQ(target[at], call * 1000 + from * 10 + rank) << "element " << at << ", call " << call;
    }
  });
}

// Longer than all that is sent to others.
TEST(VFormsOfEqualParts, MayBeTheRanksOwnAlone) {
  with_ranks({"two", {0, 0}}, [](int rank, ccomComm_t comm) {
    for (const size_t own : {size_t{5}, size_t{500000}}) {
      for (const size_t other : {size_t{0}, size_t{1}, size_t{5000}}) {
        std::vector<size_t> counts(2, other);
        counts[static_cast<size_t>(rank)] = own;
        std::vector<int32_t> send(own + other, rank), recv(own + other, -1);
        ASSERT_OK(ccomAlltoAllV(send.data(), counts.data(), nullptr, recv.data(), counts.data(), nullptr, ccomInt32,
                                comm, nullptr));
        const size_t begin = rank == 0 ? 0 : other;
        for (size_t i = 0; i < recv.size(); ++i)
          ASSERT_EQ(recv[i], i >= begin && i < begin + own ? rank : 1 - rank) << i;
      }
    }
  });
}

// A unit of the plain form holds a part and some zeros.
TEST(VFormsSums, HaveTheBitsOfThePlainFormOnOneHost) {
  for (const ccomDataType_t type : {ccomFloat32, ccomFloat16, ccomBfloat16}) {
    with_ranks({"four", {0, 0, 0, 0}}, [type](int rank, ccomComm_t comm) {
      const std::vector<size_t> counts{70001, 0, 1000, 9};
      const size_t longest = counts[0], element = type == ccomFloat32 ? 4 : 2;
      std::vector<std::byte> plain(4 * longest * element), packed;
      std::mt19937 random(static_cast<unsigned>(rank));
      for (size_t to = 0; to < 4; ++to) {
        for (size_t i = 0; i < counts[to]; ++i) {
          // Of moderate size in each type: below 1, or a little above.
          const uint32_t bits = type == ccomFloat32 ? 0x3f000000 | (random() & 0xffffff) : random() & 0x3fff;
          std::memcpy(plain.data() + (to * longest + i) * element, &bits, element);
        }
        packed.insert(packed.end(), plain.begin() + static_cast<std::ptrdiff_t>(to * longest * element),
                      plain.begin() + static_cast<std::ptrdiff_t>((to * longest + counts[to]) * element));
      }
      for (const ccomRedOp_t op : {ccomSum, ccomAvg, ccomMax}) {
        std::vector<std::byte> wanted(longest * element), got(counts[static_cast<size_t>(rank)] * element);
        ASSERT_OK(ccomReduceScatter(plain.data(), wanted.data(), longest, type, op, comm, nullptr));
        ASSERT_OK(ccomReduceScatterV(packed.data(), got.data(), counts.data(), type, op, comm, nullptr));
        wanted.resize(got.size());
        EXPECT_EQ(got, wanted) << "rank " << rank << ", type " << type << ", operator " << op;
      }
    });
  }
}

TEST(VFormsSums, AreTheSameInEveryRunAndOnSeveralHosts) {
  with_ranks({"hosts", {0, 0, 0, 1, 1}}, [](int rank, ccomComm_t comm) {
    const std::vector<size_t> counts{90001, 3, 0, 20000, 5};
    const size_t total = 110009;
    std::vector<float> send(total);
    std::mt19937 random(static_cast<unsigned>(rank));
    std::normal_distribution<float> normal(0, 1000);
    for (float& x : send) x = normal(random);
    std::vector<float> first(counts[static_cast<size_t>(rank)]), again(first.size()), all(total);
    ASSERT_OK(ccomReduceScatterV(send.data(), first.data(), counts.data(), ccomFloat32, ccomSum, comm, nullptr));
    ASSERT_OK(ccomReduceScatterV(send.data(), again.data(), counts.data(), ccomFloat32, ccomSum, comm, nullptr));
    EXPECT_EQ(first, again);
    ASSERT_OK(ccomAllReduce(send.data(), all.data(), total, ccomFloat32, ccomSum, comm, nullptr));
    size_t before = 0;
    for (int r = 0; r < rank; ++r) before += counts[static_cast<size_t>(r)];
    for (size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(first[i], all[before + i], 0.01) << i;
  });
}

// The canonical sum, and random bits by an element's place in the whole vector, are those of the plain form, too.
TEST(VFormsSums, HaveTheBitsOfThePlainFormInTheCanonicalOrderAndWithOneRounding) {
  for (const std::vector<int>& hosts : {std::vector{0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 2, 3}}) {
    for (const char* transport : {static_cast<const char*>(nullptr), "tcp"}) {
      for (const char* rounding : {"nearest", "once", "stochastic"}) {
        World world{"settings", hosts, transport};
        world.determinism = std::string(rounding) == "nearest" ? "full" : "shape";
        world.rounding = rounding;
        std::vector<std::vector<uint16_t>> wanted(4), got(4);
        for (const bool is_v : {false, true}) {
          with_ranks(world, [&](int rank, ccomComm_t comm) {
            constexpr size_t kUnit = 30011;
            std::vector<uint16_t> send(4 * kUnit), &received = (is_v ? got : wanted)[static_cast<size_t>(rank)];
            std::mt19937 random(static_cast<unsigned>(rank));
            for (uint16_t& x : send) x = static_cast<uint16_t>(0x3f00 + random() % 0x100);  // bfloat16: 0.5 to 2
            received.resize(kUnit);
            const std::vector<size_t> counts(4, kUnit);
            const ccomResult_t result =
                is_v ? ccomReduceScatterV(send.data(), received.data(), counts.data(), ccomBfloat16, ccomSum, comm,
                                          nullptr)
                     : ccomReduceScatter(send.data(), received.data(), kUnit, ccomBfloat16, ccomSum, comm, nullptr);
            ASSERT_OK(result);
          });
        }
        EXPECT_EQ(got, wanted) << rounding << " on hosts up to " << hosts.back()
                               << (transport != nullptr ? ", tcp" : "");
      }
    }
  }
}

TEST(VFormsWithOperators, MultiplyFirstAndKeepRankOrder) {
  with_ranks({"hosts", {0, 0, 1, 1}}, [](int rank, ccomComm_t comm) {
    const std::vector<size_t> counts{5, 0, 700, 2};
    const std::vector<float> send(707, 2);
    std::vector<float> recv(counts[static_cast<size_t>(rank)]);
    float scalar = static_cast<float>(rank + 1);
    ccomRedOp_t scaled = 0;
    ASSERT_OK(ccomRedOpCreatePreMulSum(&scaled, &scalar, ccomFloat32, ccomScalarHostImmediate, comm));
    ASSERT_OK(ccomReduceScatterV(send.data(), recv.data(), counts.data(), ccomFloat32, scaled, comm, nullptr));
    EXPECT_EQ(recv, std::vector<float>(recv.size(), 2 * (1 + 2 + 3 + 4)));
    // Left operands in front: a string of ranks, as digits.
    const ccomRedOpFn append = [](const void* in, void* inout, size_t count, ccomDataType_t, void*) {
      for (size_t i = 0; i < count; ++i) {
        const int64_t left = static_cast<const int64_t*>(in)[i], right = static_cast<int64_t*>(inout)[i];
        int64_t shift = 10;
        while (shift <= right) shift *= 10;
        static_cast<int64_t*>(inout)[i] = left * shift + right;
      }
      return ccomSuccess;
    };
    const ccomRedOp_t op = new_operator(append, nullptr, ccomRedOpOrdered, comm);
    const std::vector<int64_t> digits(707, rank + 1);
    std::vector<int64_t> all(recv.size());
    ASSERT_OK(ccomReduceScatterV(digits.data(), all.data(), counts.data(), ccomInt64, op, comm, nullptr));
    EXPECT_EQ(all, std::vector<int64_t>(all.size(), 1234));
  });
}

TEST(VFormsOnStreams, KeepTheirListsAndRunInOrder) {
  with_ranks({"three", {0, 0, 0}}, [](int rank, ccomComm_t comm) {
    const ccomStream_t stream = new_stream();
    std::vector<std::vector<int>> all(20, std::vector<int>(1 + 2 + 3, -1));
    const std::vector<int> send(static_cast<size_t>(rank) + 1, rank);
    for (std::vector<int>& recv : all) {
      std::vector<size_t> counts{1, 2, 3}, places{5, 3, 0};
      ASSERT_OK(
          ccomAllGatherV(send.data(), send.size(), recv.data(), counts.data(), places.data(), ccomInt32, comm, stream));
      counts = places = {9, 9, 9};
    }
    ASSERT_OK(ccomStreamSynchronize(stream, -1));
    for (const std::vector<int>& recv : all) EXPECT_EQ(recv, (std::vector<int>{2, 2, 2, 1, 1, 0}));
    EXPECT_OK(ccomStreamDestroy(stream));
  });
}

TEST(VFormsInGroups, RunBesideOtherCalls) {
  with_ranks({"hosts", {0, 0, 1, 1}}, [](int rank, ccomComm_t comm) {
    const size_t own = static_cast<size_t>(rank);
    std::vector<int> send(own, rank), gathered(6), swapped(4, -1);
    int sum = rank, got = -1;
    ASSERT_OK(ccomGroupStart());
    {
      const std::vector<size_t> counts{0, 1, 2, 3}, ones{1, 1, 1, 1};
      ASSERT_OK(ccomAllGatherV(send.data(), own, gathered.data(), counts.data(), nullptr, ccomInt32, comm, nullptr));
      ASSERT_OK(ccomSend(&rank, 1, ccomInt32, (rank + 1) % 4, comm, nullptr));
      ASSERT_OK(ccomRecv(&got, 1, ccomInt32, (rank + 3) % 4, comm, nullptr));
      const std::vector<size_t> zeros(4);
      ASSERT_OK(ccomAlltoAllV(&rank, ones.data(), zeros.data(), swapped.data(), ones.data(), nullptr, ccomInt32, comm,
                              nullptr));
    }
    ASSERT_OK(ccomAllReduce(&sum, &sum, 1, ccomInt32, ccomSum, comm, nullptr));
    ASSERT_OK(ccomGroupEnd());
    EXPECT_EQ(gathered, (std::vector<int>{1, 2, 2, 3, 3, 3}));
    EXPECT_EQ(got, (rank + 3) % 4);
    EXPECT_EQ(swapped, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_EQ(sum, 6);
  });
}

}  // namespace
}  // namespace ccom
