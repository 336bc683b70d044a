// SPDX-License-Identifier: Apache-2.0
//
// V-forms say what is wrong: with one rank's arguments, without effect; and with counts that differ between ranks, to
// all of them, by the first ranks, entries and values that do.
#include <thread>

#include "tests/api/worlds.h"
#include "tests/harness/environment.h"

namespace ccom {
namespace {

using Counts = std::vector<size_t>;

TEST(VFormsArguments, WrongOnesGetASentenceAndHaveNoEffect) {
  with_ranks({"two", {0, 0}}, [](int rank, ccomComm_t comm) {
    int send[8] = {}, recv[16] = {};
    const Counts counts{2, 2}, places{0, 4}, close{0, 1};
    const auto refused = [](ccomResult_t result, const std::string& part) {
      EXPECT_EQ(result, ccomInvalidArgument) << part;
      EXPECT_THAT(error_text(), HasSubstr(part));
    };
    const auto gather = [&](const void* from, size_t count, void* to, const size_t* all, const size_t* at) {
      return ccomAllGatherV(from, count, to, all, at, ccomInt32, comm, nullptr);
    };
    refused(gather(send, 2, recv, nullptr, nullptr), "recvcounts is NULL");
    refused(gather(send, 3, recv, counts.data(), nullptr),
            "sendcount is 3, but recvcounts[" + std::to_string(rank) + "], which is this rank's own, is 2");
    refused(gather(nullptr, 2, recv, counts.data(), nullptr), "send is NULL, but 2 elements are to be read");
    refused(gather(send, 2, nullptr, counts.data(), nullptr), "recv is NULL, but 2 elements are to be written");
    refused(gather(send, 2, recv, counts.data(), close.data()), "part 0 of recv and part 1 of recv overlap");
    refused(gather(recv + 1, 2, recv, counts.data(), places.data()), "part 0 of recv and part 0 of send overlap");
    const Counts huge{SIZE_MAX / 4, 2};
    refused(gather(send, rank == 0 ? huge[0] : 2, recv, huge.data(), nullptr), "exceed the address space");
    const Counts far{SIZE_MAX, 0};
    refused(gather(send, 2, recv, counts.data(), far.data()), "rdispls[0] 18446744073709551615");
    refused(ccomReduceScatterV(send, recv, nullptr, ccomInt32, ccomSum, comm, nullptr), "recvcounts is NULL");
    refused(ccomReduceScatterV(send, recv, counts.data(), ccomInt32, 7, comm, nullptr), "op 7 is unknown");
    refused(ccomReduceScatterV(send, send + 1, counts.data(), ccomInt32, ccomSum, comm, nullptr), "overlap");
    refused(ccomGatherV(send, 2, recv, counts.data(), nullptr, ccomInt32, 2, comm, nullptr), "root is 2");
    refused(ccomAlltoAllV(send, counts.data(), nullptr, recv, nullptr, nullptr, ccomInt32, comm, nullptr),
            "recvcounts is NULL");
    refused(ccomAlltoAllV(send, nullptr, nullptr, recv, counts.data(), nullptr, ccomInt32, comm, nullptr),
            "sendcounts is NULL");
    refused(ccomAlltoAllV(recv + 1, counts.data(), nullptr, recv, counts.data(), nullptr, ccomInt32, comm, nullptr),
            "overlap");
    refused(ccomAlltoAllV(send, counts.data(), nullptr, recv, counts.data(), nullptr, static_cast<ccomDataType_t>(99),
                          comm, nullptr),
            "type 99 is unknown");
    if (rank == 1) {
      refused(ccomScatterV(nullptr, counts.data(), nullptr, recv, 3, ccomInt32, 1, comm, nullptr),
              "recvcount is 3, but sendcounts[1], which is this rank's own, is 2");
    }
    // What may overlap: parts that are only read.
    const Counts same{0, 0};
    ASSERT_OK(ccomAlltoAllV(send, counts.data(), same.data(), recv, counts.data(), nullptr, ccomInt32, comm, nullptr));
  });
}

// On every rank, in whatever call it is.
void expect_different(const World& world, const std::string& text,
                      const std::function<ccomResult_t(int, ccomComm_t, int*)>& call) {
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    std::vector<int> memory(64);
    ASSERT_EQ(call(rank, comm, memory.data()), ccomMismatch) << "rank " << rank << ": " << error_text();
    EXPECT_THAT(error_text(), HasSubstr(text)) << "rank " << rank;
    const ccomErrorInfo_t info = error_info(comm);
    EXPECT_EQ(info.result, ccomMismatch);
    EXPECT_EQ(std::string(info.operation).back(), 'v') << info.operation;
    EXPECT_EQ(ccomBarrier(comm, nullptr), ccomMismatch) << "it is final";
    EXPECT_EQ(memory, std::vector<int>(64)) << "nothing was written";
  });
}

class VFormsMismatch : public testing::TestWithParam<World> {};

TEST_P(VFormsMismatch, IsNamedToAllRanks) {
  const World& world = GetParam();
  expect_different(world, "allgatherv int32 (call 1): sendcount of rank 2 is 3, entry 2 of recvcounts of rank 1 is 4",
                   [](int rank, ccomComm_t comm, int* memory) {
                     Counts counts{1, 2, 3};
                     if (rank == 1) counts[2] = 4;
                     return ccomAllGatherV(memory, counts[static_cast<size_t>(rank)], memory + 8, counts.data(),
                                           nullptr, ccomInt32, comm, nullptr);
                   });
  expect_different(
      world,
      "reduce_scatterv int32 sum (call 1): entry 1 of recvcounts of rank 0 is 5, entry 1 of recvcounts of rank 1 is 2",
      [](int rank, ccomComm_t comm, int* memory) {
        Counts counts{1, 2, 3};
        if (rank == 0) counts[1] = 5;
        return ccomReduceScatterV(memory, memory + 32, counts.data(), ccomInt32, ccomSum, comm, nullptr);
      });
  expect_different(world,
                   "gatherv int32 root 2 (call 1): sendcount of rank 0 is 7, entry 0 of recvcounts of rank 2 is 1",
                   [](int rank, ccomComm_t comm, int* memory) {
                     const Counts counts{1, 2, 3};
                     const size_t own = rank == 0 ? 7 : counts[static_cast<size_t>(rank)];
                     return ccomGatherV(memory, own, memory + 8, counts.data(), nullptr, ccomInt32, 2, comm, nullptr);
                   });
  expect_different(world,
                   "scatterv int32 root 1 (call 1): entry 2 of sendcounts of rank 1 is 3, recvcount of rank 2 is 0",
                   [](int rank, ccomComm_t comm, int* memory) {
                     const Counts counts{1, 2, 3};
                     const size_t own = rank == 2 ? 0 : counts[static_cast<size_t>(rank)];
                     return ccomScatterV(memory, counts.data(), nullptr, memory + 32, own, ccomInt32, 1, comm, nullptr);
                   });
  expect_different(
      world, "alltoallv int32 (call 1): entry 0 of sendcounts of rank 1 is 4, entry 1 of recvcounts of rank 0 is 1",
      [](int rank, ccomComm_t comm, int* memory) {
        Counts sent{1, 1, 1};
        const Counts received{1, 1, 1};
        if (rank == 1) sent[0] = 4;
        return ccomAlltoAllV(memory, sent.data(), nullptr, memory + 32, received.data(), nullptr, ccomInt32, comm,
                             nullptr);
      });
}

INSTANTIATE_TEST_SUITE_P(Worlds, VFormsMismatch,
                         testing::Values(World{"one_host", {0, 0, 0}}, World{"tcp", {0, 0, 0}, "tcp"},
                                         World{"hosts", {0, 0, 1}}, World{"ring", {0, 0, 0}, nullptr, "ring:3"}),
                         [](const auto& of) { return of.param.name; });

TEST(VFormsMismatch, WithThePlainFormIsOneOfCalls) {
  with_ranks({"two", {0, 0}}, [](int rank, ccomComm_t comm) {
    int send[2] = {}, recv[4] = {};
    const Counts counts{2, 2};
    const ccomResult_t result = rank == 0
                                    ? ccomAllGather(send, recv, 2, ccomInt32, comm, nullptr)
                                    : ccomAllGatherV(send, 2, recv, counts.data(), nullptr, ccomInt32, comm, nullptr);
    EXPECT_EQ(result, ccomMismatch);
    for (const char* call : {"rank 0: allgather int32 count 2 (call 1)", "rank 1: allgatherv int32 (call 1)"})
      EXPECT_THAT(error_text(), HasSubstr(call));
  });
}

// Whatever way a call takes: short and long parts, equal ones on each rank and not.
TEST(VFormsMismatch, IsNamedOnOneHostWhateverTheLengths) {
  for (const size_t scale : {size_t{1}, size_t{1000}, size_t{100000}}) {
    const auto refused = [&](const std::string& text, auto call) {
      with_ranks({"three", {0, 0, 0}}, [&](int rank, ccomComm_t comm) {
        std::vector<int> send(4 * scale), recv(4 * scale);
        ASSERT_EQ(call(rank, comm, send.data(), recv.data()), ccomMismatch) << error_text();
        EXPECT_THAT(error_text(), HasSubstr(text)) << "rank " << rank;
        EXPECT_EQ(recv, std::vector<int>(recv.size())) << "nothing was written";
      });
    };
    const std::string one = std::to_string(scale), less = std::to_string(scale - 1);
    refused("sendcount of rank 2 is " + one + ", entry 2 of recvcounts of rank 1 is " + less,
            [&](int rank, ccomComm_t comm, int* send, int* recv) {
              Counts counts(3, scale);
              if (rank == 1) counts[2] = scale - 1;
              return ccomAllGatherV(send, scale, recv, counts.data(), nullptr, ccomInt32, comm, nullptr);
            });
    refused("entry 1 of recvcounts of rank 0 is " + one + ", entry 1 of recvcounts of rank 1 is " + less,
            [&](int rank, ccomComm_t comm, int* send, int* recv) {
              const Counts counts(3, rank == 1 ? scale - 1 : scale);
              return ccomReduceScatterV(send, recv, counts.data(), ccomInt32, ccomSum, comm, nullptr);
            });
    refused("entry 2 of sendcounts of rank 0 is " + one + ", entry 0 of recvcounts of rank 2 is " + less,
            [&](int rank, ccomComm_t comm, int* send, int* recv) {
              const Counts counts(3, rank == 2 ? scale - 1 : scale);
              return ccomAlltoAllV(send, counts.data(), nullptr, recv, counts.data(), nullptr, ccomInt32, comm,
                                   nullptr);
            });
    refused("entry 1 of sendcounts of rank 0 is " + less + ", entry 0 of recvcounts of rank 1 is " + one,
            [&](int rank, ccomComm_t comm, int* send, int* recv) {
              Counts sent(3, scale), received(3, scale);
              if (rank == 0) sent = {scale, scale - 1, scale};
              return ccomAlltoAllV(send, sent.data(), nullptr, recv, received.data(), nullptr, ccomInt32, comm,
                                   nullptr);
            });
  }
}

// Whoever is missing is the error then, and whose counts differ is not known.
TEST(VFormsMismatch, IsNotNamedBeforeAllHaveCome) {
  with_ranks({"three", {0, 0, 0}}, [](int rank, ccomComm_t comm) {
    ASSERT_OK(ccomCommSetTimeout(comm, 500));
    int send[2] = {}, recv[6] = {};
    const Counts counts(3, rank == 1 ? 2 : 1);
    if (rank == 2) {  // comes when the others have given up
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      return;
    }
    EXPECT_EQ(ccomAllGatherV(send, counts[0], recv, counts.data(), nullptr, ccomInt32, comm, nullptr), ccomTimeout);
    EXPECT_THAT(error_text(), HasSubstr("rank 2")) << "rank " << rank;
  });
}

// Where messages must be handed on, everybody gets everything.
TEST(VFormsMemory, ThatAFabricTakesIsBounded) {
  const ScopedVariable bound("CCOM_MAX_MEMORY", "16777216");
  with_ranks({"ring", {0, 0, 0, 0, 0}, nullptr, "ring:5"}, [](int, ccomComm_t comm) {
    const Counts none(5);
    for (const size_t part : {size_t{100} << 10, size_t{1} << 20}) {
      const Counts counts(5, part);
      std::vector<char> send(part), recv(part * 5);
      const ccomResult_t result = ccomAlltoAllV(send.data(), counts.data(), none.data(), recv.data(), counts.data(),
                                                nullptr, ccomUint8, comm, nullptr);
      EXPECT_EQ(result, part * 25 > (size_t{16} << 20) ? ccomOutOfMemory : ccomSuccess) << error_text();
    }
    EXPECT_THAT(error_text(),
                HasSubstr("alltoallv uint8 (call 2) needs 26214400 bytes of scratch, maxMemory is 16777216"));
  });
}

}  // namespace
}  // namespace ccom
