// SPDX-License-Identifier: Apache-2.0
//
// The C API as a user meets it: wrong arguments get a sentence and have no effect; streams, events, groups,
// point-to-point, premultiplied sums, aborts, timeouts and mismatches do what the header says. Ranks are threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <string>

#include "tests/harness/threads.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

TEST(Library, SaysItsVersionAndExplainsEveryCode) {
  int version = 0;
  ASSERT_OK(ccomGetVersion(&version));
  EXPECT_EQ(version, CCOM_VERSION_CODE);
  for (const ccomResult_t code :
       {ccomSuccess, ccomSystemError, ccomInvalidArgument, ccomRemoteError, ccomMismatch, ccomNotSupported}) {
    EXPECT_GT(std::strlen(ccomGetErrorString(code)), 3U);
  }
  EXPECT_EQ(ccomGetVersion(nullptr), ccomInvalidArgument);
  EXPECT_EQ(error_text(), "ccomGetVersion: version is NULL [CCOM-E003]");
}

TEST(Library, ListsItsParameters) {
  const ccomParamDesc_t* const* list = nullptr;
  size_t n = 0;
  ASSERT_OK(ccomParamList(&list, &n));
  EXPECT_GT(n, 10U);
  EXPECT_TRUE(
      std::is_sorted(list, list + n, [](const auto* a, const auto* b) { return std::strcmp(a->key, b->key) < 0; }));
  EXPECT_EQ(list[0]->size, sizeof(ccomParamDesc_t));
  char value[64];
  size_t length = sizeof value;
  const char* origin = nullptr;
  ASSERT_OK(ccomParamGet("CCOM_TIMEOUT_MS", value, &length, &origin));
  EXPECT_STREQ(value, "300000");
  EXPECT_STREQ(origin, "default");
  length = 3;
  EXPECT_EQ(ccomParamGet("CCOM_TIMEOUT_MS", value, &length, nullptr), ccomInvalidArgument);
  EXPECT_EQ(length, 7U) << "says what is needed";
  EXPECT_EQ(ccomParamGet("CCOM_NO_SUCH", value, &length, nullptr), ccomInvalidArgument);
}

TEST(Library, HandsLogLinesToTheCallback) {
  std::vector<std::string> lines;
  ASSERT_OK(ccomSetLogCallback([](ccomLogLevel_t, const char* message,
                                  void* user) { static_cast<std::vector<std::string>*>(user)->push_back(message); },
                               &lines));
  with_ranks(1, [](int, ccomComm_t) {});
  EXPECT_OK(ccomSetLogCallback(nullptr, nullptr));
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) {
    return line.find("rank 0 of a communicator of 1 on 1 host") != std::string::npos;
  }));
}

TEST(Arguments, WrongOnesGetASentenceAndHaveNoEffect) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    float send[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float recv[16] = {};
    const auto refused = [](ccomResult_t result, const char* part) {
      EXPECT_EQ(result, ccomInvalidArgument) << part;
      EXPECT_THAT(error_text(), HasSubstr(part));
    };
    refused(ccomAllReduce(send, recv, 4, ccomFloat32, ccomSum, nullptr, nullptr), "comm is NULL");
    refused(ccomAllReduce(nullptr, recv, 4, ccomFloat32, ccomSum, comm, nullptr), "send is NULL");
    refused(ccomAllReduce(send, nullptr, 4, ccomFloat32, ccomSum, comm, nullptr), "recv is NULL");
    refused(ccomAllReduce(send, recv, 4, static_cast<ccomDataType_t>(99), ccomSum, comm, nullptr), "type 99");
    refused(ccomAllReduce(send, recv, 4, ccomFloat32, 7, comm, nullptr), "op 7");
    refused(ccomAllReduce(send, recv, 4, ccomFloat32, ccomBand, comm, nullptr), "band is not defined for float32");
    refused(ccomAllReduce(send, recv, 4, ccomFloat32, ccomNumOps + 3, comm, nullptr), "not an operator");
    refused(ccomAllReduce(send, send + 2, 4, ccomFloat32, ccomSum, comm, nullptr), "overlap");
    refused(ccomAllReduce(send, recv, SIZE_MAX / 2, ccomFloat32, ccomSum, comm, nullptr), "too large");
    refused(ccomBroadcast(send, recv, 4, ccomFloat32, 2, comm, nullptr), "root is 2");
    refused(ccomReduce(send, recv, 4, ccomFloat32, ccomSum, -1, comm, nullptr), "root is -1");
    refused(ccomAllGather(recv + 1, recv, 4, ccomFloat32, comm, nullptr), "overlap");
    refused(ccomSend(send, 4, ccomFloat32, 5, comm, nullptr), "peer is 5");
    EXPECT_EQ(ccomSend(send, 4, ccomFloat32, rank, comm, nullptr), ccomInvalidUsage);
    EXPECT_EQ(ccomGroupEnd(), ccomInvalidUsage);
    // The communicator is as good as before.
    ASSERT_OK(ccomAllReduce(send, recv, 8, ccomFloat32, ccomSum, comm, nullptr));
    EXPECT_EQ(recv[7], 16);
    EXPECT_OK(async_error(comm));
  });
}

TEST(Arguments, InitRefusesNonsense) {
  ccomUniqueId id;
  std::memset(&id, 0, sizeof id);
  ccomComm_t comm = nullptr;
  EXPECT_EQ(ccomCommInitRank(&comm, 0, id, 0), ccomInvalidArgument);
  EXPECT_EQ(ccomCommInitRank(&comm, 2, id, 2), ccomInvalidArgument);
  EXPECT_EQ(ccomCommInitRank(&comm, 2, id, 0), ccomInvalidArgument) << "an id of zeros is none";
  EXPECT_EQ(comm, nullptr);
  EXPECT_EQ(ccomCommInitAll(&comm, 0, nullptr), ccomInvalidArgument);
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.transport = "carrier-pigeon";
  EXPECT_ERROR(ccomCommInitAll(&comm, 1, &config), ccomConfigError, "carrier-pigeon");
  config = CCOM_CONFIG_INIT;
  config.algorithm = "rign";
  EXPECT_ERROR(ccomCommInitAll(&comm, 1, &config), ccomConfigError, "did you mean ring?") << "not at the first call";
  EXPECT_THAT(error_text(), HasSubstr("recursive_doubling")) << "names the algorithms there are";
}

TEST(Arguments, AWrongLogLevelIsRefusedAtTheStart) {
  ::setenv("CCOM_LOG", "debg", 1);
  ccomComm_t comm = nullptr;
  EXPECT_EQ(ccomCommInitAll(&comm, 1, nullptr), ccomConfigError);
  ::unsetenv("CCOM_LOG");
  EXPECT_THAT(error_text(),
              HasSubstr("CCOM_LOG=debg: there is no level 'debg': there are error, warn, info and debug"));
}

TEST(Errors, OfThisThreadAreToldWhereTheCommunicatorHasNone) {
  with_ranks(1, [](int, ccomComm_t comm) {
    float x = 1;
    EXPECT_STREQ(ccomGetLastError(comm), "");
    ASSERT_EQ(ccomAllReduce(nullptr, &x, 1, ccomFloat32, ccomSum, comm, nullptr), ccomInvalidArgument);
    EXPECT_STREQ(ccomGetLastError(comm), error_text().c_str());
    EXPECT_THAT(ccomGetLastError(comm), HasSubstr("send is NULL"));
  });
}

TEST(Collectives, OneRankAloneIsFine) {
  with_ranks(1, [](int, ccomComm_t comm) {
    const int64_t x[3] = {-7, 8, 9};
    int64_t y[3] = {};
    ASSERT_OK(ccomAllReduce(x, y, 3, ccomInt64, ccomAvg, comm, nullptr));
    EXPECT_EQ(y[0], -7);
    ASSERT_OK(ccomAlltoAll(x, y, 3, ccomInt64, comm, nullptr));
    ASSERT_OK(ccomBarrier(comm, nullptr));
    ASSERT_OK(ccomScatter(x, y, 3, ccomInt64, 0, comm, nullptr));
    EXPECT_EQ(y[2], 9);
  });
}

// A bug found: the only contribution was copied as it was.
TEST(Collectives, OneRankAloneStillGetsALogicalResult) {
  with_ranks(1, [](int, ccomComm_t comm) {
    const int8_t x[3] = {-93, 0, 7};
    int8_t y[3] = {};
    ASSERT_OK(ccomAllReduce(x, y, 3, ccomInt8, ccomLor, comm, nullptr));
    EXPECT_THAT(y, ::testing::ElementsAre(1, 0, 1));
  });
}

TEST(Collectives, EveryRankGetsTheSameBitsOfARandomFloatSum) {
  for (const char* algorithm :
       {"one_shot", "two_shot", "recursive_doubling", "circulant", "ring", "torus", "tree", "bine_latency"}) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.algorithm = algorithm;
    constexpr int kRanks = 5;
    constexpr size_t kCount = 10007;
    std::vector<std::vector<float>> results(kRanks, std::vector<float>(kCount));
    with_ranks(kRanks, &config, [&](int rank, ccomComm_t comm) {
      std::mt19937 random(static_cast<unsigned>(rank));
      std::normal_distribution<float> normal(0, 1000);
      std::vector<float> send(kCount);
      for (float& x : send) x = normal(random);
      ASSERT_OK(ccomAllReduce(send.data(), results[static_cast<size_t>(rank)].data(), kCount, ccomFloat32, ccomSum,
                              comm, nullptr));
    });
    for (int rank = 1; rank < kRanks; ++rank) {
      EXPECT_EQ(0, std::memcmp(results[0].data(), results[static_cast<size_t>(rank)].data(), kCount * sizeof(float)))
          << algorithm;
    }
  }
}

TEST(Collectives, LargeReductionsRunInTilesAndAreRight) {
  for (const char* algorithm : {"two_shot", "one_shot", "star", "ring"}) {
    with_ranks({.hosts = std::vector<int>(3), .algorithm = algorithm}, [&](int rank, ccomComm_t comm) {
      const size_t count = 700001;
      std::vector<int32_t> send(3 * count), recv(count);
      for (size_t i = 0; i < send.size(); ++i) send[i] = static_cast<int32_t>(i * 7 + static_cast<size_t>(rank));
      ASSERT_OK(ccomAllReduce(send.data(), recv.data(), count, ccomInt32, ccomSum, comm, nullptr));
      for (size_t i = 0; i < count; i += 1009)
        ASSERT_EQ(recv[i], static_cast<int32_t>(3 * i * 7 + 3)) << algorithm << " " << i;
      ASSERT_OK(ccomReduce(send.data(), recv.data(), count, ccomInt32, ccomSum, 1, comm, nullptr));
      if (rank == 1) {
        ASSERT_EQ(recv[count - 1], static_cast<int32_t>(3 * (count - 1) * 7 + 3));
      }
      ASSERT_OK(ccomReduceScatter(send.data(), recv.data(), count, ccomInt32, ccomSum, comm, nullptr));
      for (size_t i = 0; i < count; i += 1013) {
        ASSERT_EQ(recv[i], static_cast<int32_t>(3 * 7 * (static_cast<size_t>(rank) * count + i) + 3))
            << algorithm << " " << i;
      }
    });
  }
}

TEST(Collectives, UnalignedPointersAndZeroCounts) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    std::vector<char> memory(2 * 4097 * 4 + 64);
    char* send = memory.data() + 1;
    char* recv = memory.data() + 4097 * 4 + 7;
    for (int i = 0; i < 4097; ++i) {
      const float x = static_cast<float>(i + rank);
      std::memcpy(send + 4 * i, &x, 4);
    }
    ASSERT_OK(ccomAllReduce(send, recv, 4097, ccomFloat32, ccomSum, comm, nullptr));
    float last = 0;
    std::memcpy(&last, recv + 4 * 4096, 4);
    EXPECT_EQ(last, 3 * 4096 + 3);
    EXPECT_OK(ccomAllReduce(nullptr, nullptr, 0, ccomFloat32, ccomSum, comm, nullptr));
    EXPECT_OK(ccomAllGather(nullptr, nullptr, 0, ccomFloat32, comm, nullptr));
    EXPECT_OK(ccomAlltoAll(nullptr, nullptr, 0, ccomInt8, comm, nullptr));
  });
}

TEST(PreMulSum, MultipliesEachRanksInputFirst) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    double scalar = rank + 1;
    ccomRedOp_t now = 0;
    ccomRedOp_t later = 0;
    ASSERT_OK(ccomRedOpCreatePreMulSum(&now, &scalar, ccomFloat64, ccomScalarHostImmediate, comm));
    ASSERT_OK(ccomRedOpCreatePreMulSum(&later, &scalar, ccomFloat64, ccomScalarDevice, comm));
    scalar = 10;
    const double send[2] = {1, 100};
    double recv[2] = {};
    ASSERT_OK(ccomAllReduce(send, recv, 2, ccomFloat64, now, comm, nullptr));
    EXPECT_EQ(recv[1], 600) << "1 + 2 + 3 times 100: the scalar was read at creation";
    ASSERT_OK(ccomAllReduce(send, recv, 2, ccomFloat64, later, comm, nullptr));
    EXPECT_EQ(recv[1], 3000) << "read when the operation ran";
    float wrong[2] = {};
    EXPECT_EQ(ccomAllReduce(wrong, wrong, 2, ccomFloat32, now, comm, nullptr), ccomInvalidArgument)
        << "made for another type";
    EXPECT_OK(ccomRedOpDestroy(now, comm));
    EXPECT_EQ(ccomRedOpDestroy(now, comm), ccomInvalidArgument);
    EXPECT_EQ(ccomAllReduce(send, recv, 2, ccomFloat64, now, comm, nullptr), ccomInvalidArgument);
  });
}

TEST(PointToPoint, KeepsOrderAndRunsBothWaysInAGroup) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    const int peer = 1 - rank;
    std::vector<int> big(1 << 20, rank), got(1 << 20, -1);
    ASSERT_OK(ccomGroupStart());
    ASSERT_OK(ccomSend(big.data(), big.size(), ccomInt32, peer, comm, nullptr));
    ASSERT_OK(ccomRecv(got.data(), got.size(), ccomInt32, peer, comm, nullptr));
    ASSERT_OK(ccomGroupEnd());
    EXPECT_EQ(std::ranges::count(got, peer), 1 << 20);
    for (int i = 0; i < 100; ++i) {
      int value = i;
      if (rank == 0) {
        ASSERT_OK(ccomSend(&value, 1, ccomInt32, 1, comm, nullptr));
      } else {
        ASSERT_OK(ccomRecv(&value, 1, ccomInt32, 0, comm, nullptr));
      }
      EXPECT_EQ(value, i);
    }
  });
}

TEST(PointToPoint, ToOneselfWorksInAGroupOnly) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    int send = 40 + rank;
    int recv = 0;
    ASSERT_OK(ccomGroupStart());
    ASSERT_OK(ccomSend(&send, 1, ccomInt32, rank, comm, nullptr));
    ASSERT_OK(ccomRecv(&recv, 1, ccomInt32, rank, comm, nullptr));
    ASSERT_OK(ccomGroupEnd());
    EXPECT_EQ(recv, 40 + rank);
    ASSERT_OK(ccomGroupStart());
    ASSERT_OK(ccomSend(&send, 1, ccomInt32, rank, comm, nullptr));
    EXPECT_EQ(ccomGroupEnd(), ccomInvalidUsage) << "nobody receives it";
  });
}

TEST(Groups, OneThreadMayHoldAllRanks) {
  ccomComm_t comms[4];
  ASSERT_OK(ccomCommInitAll(comms, 4, nullptr));
  int send[4] = {1, 2, 3, 4};
  int recv[4] = {};
  ASSERT_OK(ccomGroupStart());
  for (int r = 0; r < 4; ++r) {
    ASSERT_OK(ccomAllReduce(&send[r], &recv[r], 1, ccomInt32, ccomSum, comms[r], nullptr));
    ASSERT_OK(ccomAllReduce(&recv[r], &recv[r], 1, ccomInt32, ccomMax, comms[r], nullptr));
  }
  EXPECT_EQ(recv[0], 0) << "nothing runs before the end of the group";
  ASSERT_OK(ccomGroupEnd());
  for (const int x : recv) EXPECT_EQ(x, 10);
  for (ccomComm_t comm : comms) ccomCommDestroy(comm);
}

TEST(Groups, StartSeveralRanksFromOneThread) {
  const ccomUniqueId id = new_id();
  ccomComm_t comms[3];
  ASSERT_OK(ccomGroupStart());
  for (int r = 0; r < 3; ++r) ASSERT_OK(ccomCommInitRank(&comms[r], 3, id, r));
  ASSERT_OK(ccomGroupEnd());
  for (int r = 0; r < 3; ++r) {
    int rank = -1;
    EXPECT_OK(ccomCommUserRank(comms[r], &rank));
    EXPECT_EQ(rank, r);
    EXPECT_OK(ccomCommDestroy(comms[r]));
  }
}

TEST(Streams, RunInOrderBesideTheCaller) {
  with_ranks(2, [](int, ccomComm_t comm) {
    ccomStream_t stream = nullptr;
    ccomEvent_t event = nullptr;
    ASSERT_OK(ccomStreamCreate(&stream));
    ASSERT_OK(ccomEventCreate(&event));
    EXPECT_OK(ccomEventQuery(event)) << "never recorded: complete";
    std::vector<int64_t> x(1000, 1);
    for (int i = 0; i < 10; ++i)
      ASSERT_OK(ccomAllReduce(x.data(), x.data(), x.size(), ccomInt64, ccomSum, comm, stream));
    ASSERT_OK(ccomEventRecord(event, stream));
    std::atomic<int> called{0};
    ASSERT_OK(ccomStreamAddCallback(
        stream,
        [](void* user, ccomResult_t state) { *static_cast<std::atomic<int>*>(user) = state == ccomSuccess ? 1 : 2; },
        &called));
    ASSERT_OK(ccomEventSynchronize(event, 20000));
    EXPECT_EQ(x[999], 1024);
    ASSERT_OK(ccomStreamSynchronize(stream, 20000));
    EXPECT_EQ(called, 1);
    EXPECT_OK(ccomStreamQuery(stream));
    // A second stream waits for the first.
    const ccomStream_t second = new_stream();
    ASSERT_OK(ccomAllReduce(x.data(), x.data(), x.size(), ccomInt64, ccomSum, comm, stream));
    ASSERT_OK(ccomEventRecord(event, stream));
    ASSERT_OK(ccomStreamWaitEvent(second, event));
    ASSERT_OK(ccomAllReduce(x.data(), x.data(), x.size(), ccomInt64, ccomSum, comm, second));
    ASSERT_OK(ccomStreamSynchronize(second, -1));
    EXPECT_EQ(x[0], 4096);
    EXPECT_OK(ccomStreamDestroy(stream));
    EXPECT_OK(ccomStreamDestroy(second));
    EXPECT_OK(ccomEventDestroy(event));
  });
}

// A bug found by review: ticket and place in the queue were taken apart, so two threads could take them in opposite
// orders.
TEST(Streams, TwoThreadsMayShareOneStreamAndCommunicator) {
  with_ranks(1, [](int, ccomComm_t comm) {
    const ccomStream_t stream = new_stream();
    run_threads(4, [&](int) {
      for (int i = 0; i < 3000; ++i) ASSERT_OK(ccomBarrier(comm, stream));
    });
    ASSERT_OK(ccomStreamSynchronize(stream, 20000));
    EXPECT_OK(ccomStreamDestroy(stream));
  });
}

// A bug found by review: they ran one after the other in the stream's thread, and the first waited for the second.
TEST(Groups, RanksOfOneThreadMayShareOneStream) {
  ccomComm_t comms[3];
  ccomStream_t stream = nullptr;
  ASSERT_OK(ccomCommInitAll(comms, 3, nullptr));
  ASSERT_OK(ccomStreamCreate(&stream));
  int x[3] = {1, 2, 3};
  ASSERT_OK(ccomGroupStart());
  for (int r = 0; r < 3; ++r) {
    ASSERT_OK(ccomAllReduce(&x[r], &x[r], 1, ccomInt32, ccomSum, comms[r], stream));
  }
  ASSERT_OK(ccomGroupEnd());
  ASSERT_OK(ccomStreamSynchronize(stream, 20000));
  for (const int value : x) EXPECT_EQ(value, 6);
  EXPECT_OK(ccomStreamDestroy(stream));
  for (ccomComm_t comm : comms) ccomCommDestroy(comm);
}

// A bug found by review: it overflowed the clock and lay in the past.
TEST(Errors, AnEndlessTimeoutIsNoTimeoutAtAll) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = INT64_MAX;
  with_ranks(2, &config, [](int rank, ccomComm_t comm) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_OK(ccomBarrier(comm, nullptr));
  });
}

TEST(Errors, AMismatchIsReportedByAllWithBothCallsAndSticks) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = 20000;
  config.commName = "dp0";
  with_ranks(4, &config, [](int rank, ccomComm_t comm) {
    std::vector<float> x(2000, 1);
    ASSERT_EQ(ccomAllReduce(x.data(), x.data(), rank == 2 ? 1024 : 1000, ccomFloat32, ccomSum, comm, nullptr),
              ccomMismatch);
    const std::string text = error_text();
    EXPECT_THAT(text, HasSubstr("count 1024"));
    EXPECT_THAT(text, HasSubstr("count 1000"));
    EXPECT_THAT(text, HasSubstr("dp0"));
    const ccomErrorInfo_t info = error_info(comm);
    EXPECT_EQ(info.result, ccomMismatch);
    EXPECT_STREQ(info.operation, "allreduce");
    EXPECT_EQ(info.sequence, 1U);
    EXPECT_GT(std::strlen(info.cure), 0U);
    EXPECT_STREQ(info.key, "CCOM-E008");
    EXPECT_TRUE(text.ends_with(" [CCOM-E008]")) << text;
    EXPECT_EQ(ccomBarrier(comm, nullptr), ccomMismatch) << "the error is final";
  });
}

TEST(Errors, AnAbortFromAnotherThreadEndsAWait) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the other one waits by now
      EXPECT_OK(ccomCommAbort(comm));
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(ccomBarrier(comm, nullptr), ccomAborted);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_THAT(error_text(), HasSubstr("rank 1"));
  });
}

TEST(Errors, FailedOperationsWriteNothingAfterTheReturn) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = 150;
  std::vector<char> recv(1 << 20, 0);
  with_ranks(2, &config, [&](int rank, ccomComm_t comm) {
    std::vector<char> send(1 << 20, 1);
    if (rank == 0) {
      EXPECT_EQ(ccomRecv(recv.data(), recv.size(), ccomInt8, 1, comm, nullptr), ccomTimeout);
      std::ranges::fill(recv, 7);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for what comes late
      EXPECT_EQ(std::ranges::count(recv, 7), 1 << 20);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));  // longer than rank 0 waits
      EXPECT_EQ(ccomSend(send.data(), send.size(), ccomInt8, 0, comm, nullptr), ccomTimeout);
    }
  });
}

TEST(Info, ReportsWhereTheCommunicatorRuns) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    float x = 1;
    ASSERT_OK(ccomAllReduce(&x, &x, 1, ccomFloat32, ccomSum, comm, nullptr));
    ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
    ASSERT_OK(ccomCommGetInfo(comm, &info));
    EXPECT_EQ(info.rank, rank);
    EXPECT_EQ(info.nranks, 2);
    EXPECT_EQ(info.nhosts, 1);
    EXPECT_STREQ(info.transports, "shm");
    EXPECT_EQ(info.sequence, 1U);
    EXPECT_EQ(info.bytesSent, 0U);  // through shared memory
    char json[4096];
    size_t length = sizeof json;
    ASSERT_OK(ccomExplain(comm, "allreduce", 1000, ccomFloat32, -1, json, &length));
    EXPECT_THAT(json, HasSubstr("\"candidates\""));
  });
}

TEST(Memory, AnyBufferCanBeRegisteredByAnyRank) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    constexpr size_t kCount = 8192;
    float* data = nullptr;
    ASSERT_EQ(posix_memalign(reinterpret_cast<void**>(&data), rank == 0 ? 4096 : 64, kCount * sizeof(float)), 0);
    std::fill_n(data, kCount, static_cast<float>(rank + 1));
    void* handle = nullptr;
    ASSERT_OK(ccomCommRegister(comm, data, kCount * sizeof(float), &handle));
    EXPECT_EQ(data[kCount - 1], static_cast<float>(rank + 1));
    ASSERT_OK(ccomAllReduce(data, data, kCount, ccomFloat32, ccomSum, comm, nullptr));
    ASSERT_OK(ccomCommDeregister(comm, handle));
    EXPECT_EQ(std::count(data, data + kCount, 3.0F), static_cast<std::ptrdiff_t>(kCount));
    EXPECT_EQ(ccomCommRegister(comm, nullptr, 5, &handle), ccomInvalidArgument);
    EXPECT_EQ(ccomCommRegister(comm, data, 5, nullptr), ccomInvalidArgument);
    std::free(data);
  });
}

TEST(Memory, AWindowGivesPointersToPeers) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    int* data = nullptr;
    ASSERT_OK(ccomMemAlloc(reinterpret_cast<void**>(&data), 4096));
    ccomWindow_t window = nullptr;
    ASSERT_OK(ccomCommWindowRegister(comm, data, 4096, &window, 0));
    for (int peer = 0; peer < 3; ++peer) {
      void* theirs = nullptr;
      ASSERT_OK(ccomWinGetPeerPtr(window, peer, &theirs));
      static_cast<int*>(theirs)[rank] = 10 + rank;
    }
    ASSERT_OK(ccomBarrier(comm, nullptr));
    for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(data[peer], 10 + peer);
    void* nowhere = nullptr;
    EXPECT_EQ(ccomWinGetPeerPtr(window, 3, &nowhere), ccomInvalidArgument);
    ccomWindow_t other = nullptr;
    EXPECT_EQ(ccomCommWindowRegister(comm, data, 4096, &other, 1), ccomInvalidArgument);
    ASSERT_OK(ccomBarrier(comm, nullptr));
    EXPECT_OK(ccomCommWindowDeregister(comm, window));
    EXPECT_OK(ccomMemFree(data));
  });
}

TEST(Memory, IsZeroedAndRefusesStrangers) {
  void* memory = nullptr;
  ASSERT_OK(ccomMemAlloc(&memory, 100000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0U);
  EXPECT_EQ(static_cast<char*>(memory)[99999], 0);
  EXPECT_OK(ccomMemFree(memory));
  EXPECT_EQ(ccomMemFree(memory), ccomInvalidArgument);
  EXPECT_OK(ccomMemFree(nullptr));
}

// In small calls of a root the others may be far behind.
TEST(Communicators, ARootMayLeaveWhileOthersAreBehind) {
  for (const int bytes : {4, 1024}) {
    std::vector<ccomComm_t> comms(3);
    ASSERT_OK(ccomCommInitAll(comms.data(), 3, nullptr));
    run_ranks(3, [&](int rank) {
      ccomComm_t comm = comms[static_cast<size_t>(rank)];
      if (rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100 * rank));
      std::vector<int> x(static_cast<size_t>(bytes) / sizeof(int));
      for (int i = 0; i < 20; ++i) {
        if (rank == 0) std::ranges::fill(x, i);
        ASSERT_OK(ccomBroadcast(x.data(), x.data(), x.size(), ccomInt32, 0, comm, nullptr));
        ASSERT_EQ(x, std::vector<int>(x.size(), i));
      }
      EXPECT_OK(ccomCommDestroy(comm));
    });
  }
}

TEST(Communicators, SeveralAtOnceDoNotDisturbOneAnother) {
  ccomComm_t a[2];
  ccomComm_t b[2];
  ASSERT_OK(ccomCommInitAll(a, 2, nullptr));
  ASSERT_OK(ccomCommInitAll(b, 2, nullptr));
  run_threads(4, [&](int t) {
    ccomComm_t comm = t < 2 ? a[t] : b[t - 2];
    for (int i = 0; i < 200; ++i) {
      int x = t < 2 ? 1 : 100;
      ASSERT_OK(ccomAllReduce(&x, &x, 1, ccomInt32, ccomSum, comm, nullptr));
      ASSERT_EQ(x, t < 2 ? 2 : 200);
    }
  });
  for (ccomComm_t comm : {a[0], a[1], b[0], b[1]}) ccomCommDestroy(comm);
}

}  // namespace
}  // namespace ccom
