// SPDX-License-Identifier: Apache-2.0
//
// What ends messages: wrong arguments, unequal sizes, deadlines, aborts, ranks that leave, destruction. Every message
// that was posted is complete in the end, and every text names who and what.

#include <chrono>
#include <latch>

#include "tests/harness/child.h"
#include "tests/messages/ranks.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(MessageErrors, WrongArgumentsHaveNoEffect) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    int x = 1;
    ccomMessage_t message = nullptr;
    EXPECT_ERROR(ccomMessageSend(&x, 4, 2, 0, comm, nullptr, nullptr, &message), ccomInvalidArgument,
                 "peer is 2; it must be within 0..1");
    EXPECT_EQ(ccomMessageSend(&x, 4, CCOM_ANY_RANK, 0, comm, nullptr, nullptr, &message), ccomInvalidArgument);
    EXPECT_ERROR(ccomMessageRecv(&x, 4, -2, 0, comm, nullptr, nullptr, &message), ccomInvalidArgument, "CCOM_ANY_RANK");
    EXPECT_EQ(ccomMessageRecv(nullptr, 4, 0, 0, comm, nullptr, nullptr, &message), ccomInvalidArgument);
    EXPECT_EQ(ccomMessageSend(&x, SIZE_MAX, 0, 0, comm, nullptr, nullptr, &message), ccomInvalidArgument);
    EXPECT_EQ(ccomMessageSend(&x, 4, 0, 0, nullptr, nullptr, nullptr, &message), ccomInvalidArgument);
    EXPECT_EQ(message, nullptr);
    EXPECT_EQ(ccomMessageWait(nullptr, 0, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomMessageTest(nullptr, nullptr), ccomInvalidArgument);
    EXPECT_OK(ccomMessageFree(nullptr));
    finish(rank == 0 ? send(&x, 4, 1, 0, comm) : receive(&x, 4, 0, 0, comm));
  });
}

TEST(MessageErrors, ACommunicatorWithoutMessagesSaysHowToGetThem) {
  ccomComm_t comm = nullptr;
  ASSERT_OK(ccomCommInitAll(&comm, 1, nullptr));
  int x = 0;
  EXPECT_ERROR(ccomMessageSend(&x, 4, 0, 0, comm, nullptr, nullptr, nullptr), ccomInvalidUsage, "CCOM_MESSAGES=1");
  EXPECT_OK(ccomCommDestroy(comm));
}

TEST(MessageErrors, AllRanksMustWantThem) {
  expect_disagreement([](int rank, ccomConfig_t& config) { config.messages = rank; }, "CCOM_MESSAGES (1 against 0)");
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.messages = 2;
  ccomComm_t comm = nullptr;
  EXPECT_EQ(ccomCommInitAll(&comm, 1, &config), ccomInvalidArgument);
}

class MessageEnds : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Over, MessageEnds, testing::Values(kShm, kTcp, kOfi, kMixed), way_name);

TEST_P(MessageEnds, UnequalSizesAreAMismatchOnBothSides) {
  for (const size_t bytes : {size_t{10}, size_t{2000}}) {
    with_message_ranks(4, {.way = GetParam()}, [bytes](int rank, ccomComm_t comm) {
      std::vector<char> data(5000, 1), other(100, 7);
      if (rank == 0) {
        ccomMessage_t sent = send(data.data(), bytes, 3, 4, comm);
        receive_fails(other.data(), other.size(), 3, 5, comm, ccomMismatch);
        const ccomResult_t result = ccomMessageWait(sent, -1, nullptr);
        EXPECT_TRUE(result == ccomMismatch || (bytes <= 992 && result == ccomSuccess)) << error_text();
        ccomMessageFree(sent);
      } else if (rank == 3) {
        receive_fails(data.data(), 3000, 0, 4, comm, ccomMismatch);
      } else {
        receive_fails(other.data(), other.size(), 0, 4, comm, ccomMismatch);
      }
      EXPECT_THAT(error_text(), HasSubstr("rank 0 sends " + std::to_string(bytes) + " bytes, rank 3 receives 3000"));
      const ccomErrorInfo_t info = error_info(comm);
      EXPECT_EQ(info.nPeers, 2);
      EXPECT_STREQ(info.operation, "message");
      EXPECT_EQ(ccomBarrier(comm, nullptr), ccomMismatch) << "the error is the communicator's";
    });
  }
}

TEST_P(MessageEnds, ALateMessageNamesItself) {
  with_message_ranks(3, {.way = GetParam(), .timeout_ms = 60000}, [](int rank, ccomComm_t comm) {
    if (rank == 2) return;
    char data[100] = {};
    ASSERT_OK(ccomCommSetTimeout(comm, rank == 0 ? 150 : 60000));
    ccomMessage_t late = receive(data, sizeof data, 2, 77, comm);
    ASSERT_OK(ccomCommSetTimeout(comm, 60000));
    const auto start = steady_clock::now();
    EXPECT_EQ(ccomMessageWait(late, 10, nullptr), ccomInProgress);
    finish(late, ccomTimeout);
    EXPECT_LT(steady_clock::now() - start, milliseconds(20000));
    EXPECT_THAT(error_text(), HasSubstr("from rank 2 (tag 77, 100 bytes) timed out: not received within 150 ms"));
    const ccomErrorInfo_t info = error_info(comm);
    EXPECT_EQ(info.nPeers, 1);
    EXPECT_EQ(info.peers[0], 2);
    EXPECT_EQ(ccomMessageSend(data, 1, 2, 0, comm, nullptr, nullptr, nullptr), ccomTimeout) << "and stays";
  });
}

TEST_P(MessageEnds, ADeadlineNeedsNobodyWhoWaits) {
  with_message_ranks(2, {.way = GetParam(), .timeout_ms = 100}, [](int rank, ccomComm_t comm) {
    if (rank == 1) return void(std::this_thread::sleep_for(milliseconds(600)));
    std::vector<char> data(100000);
    ccomMessage_t late = send(data.data(), data.size(), 1, 0, comm);
    std::this_thread::sleep_for(milliseconds(500));  // five times the timeout
    EXPECT_EQ(async_error(comm), ccomTimeout);
    finish(late, ccomTimeout);
  });
}

TEST_P(MessageEnds, AnAbortEndsWaitsEverywhere) {
  std::latch posted(4);
  with_message_ranks(4, {.way = GetParam()}, [&posted](int rank, ccomComm_t comm) {
    char data[8];
    ccomMessage_t never = receive(data, sizeof data, (rank + 1) % 4, 0, comm);
    ccomMessage_t either = receive(data, sizeof data, CCOM_ANY_RANK, 1, comm);
    posted.count_down();
    if (rank == 3) {
      posted.wait();
      std::this_thread::sleep_for(milliseconds(100));  // they are under way
      EXPECT_OK(ccomCommAbort(comm));
    }
    const auto start = steady_clock::now();
    finish(never, ccomAborted);
    finish(either, ccomAborted);
    EXPECT_LT(steady_clock::now() - start, milliseconds(20000));
    EXPECT_THAT(error_text(), HasSubstr("rank 3"));
  });
}

TEST_P(MessageEnds, WhoLeavesTooEarlyIsNamed) {
  std::latch posted(1);
  with_message_ranks(2, {.way = GetParam()}, [&posted](int rank, ccomComm_t& comm) {
    std::vector<char> data(200000);
    if (rank == 0) {
      posted.wait();
      std::this_thread::sleep_for(milliseconds(100));  // they are under way
    } else {
      ccomMessage_t small = receive(data.data(), 8, 0, 1, comm);
      ccomMessage_t large = send(data.data(), data.size(), 0, 1, comm);
      posted.count_down();
      const auto start = steady_clock::now();
      finish(small, ccomRemoteError);
      EXPECT_LT(steady_clock::now() - start, milliseconds(20000));
      EXPECT_THAT(error_text(), HasSubstr("rank 0 left the communicator"));
      finish(large, ccomRemoteError);
    }
    EXPECT_OK(ccomCommDestroy(std::exchange(comm, nullptr)));
  });
}

TEST_P(MessageEnds, DestructionCompletesWhatIsUnderWay) {
  std::latch first_destroyed(1);  // rank 0's: otherwise its messages fail because rank 1 has left
  with_message_ranks(2, {.way = GetParam()}, [&first_destroyed](int rank, ccomComm_t& comm) {
    ASSERT_OK(ccomBarrier(comm, nullptr));
    if (rank == 1) first_destroyed.wait();
    std::vector<char> data(1 << 20);
    std::vector<ccomMessage_t> messages;
    for (int i = 0; i < 20 && rank == 0; ++i) {
      messages.push_back(receive(data.data(), data.size(), i % 2 == 0 ? CCOM_ANY_RANK : 1, 5 + i, comm));
    }
    std::thread waiter([&messages] {
      if (messages.empty()) return;
      EXPECT_EQ(ccomMessageWait(messages[3], -1, nullptr), ccomAborted);
    });
    std::this_thread::sleep_for(milliseconds(20));  // it waits by now
    const auto start = steady_clock::now();
    EXPECT_OK(ccomCommDestroy(std::exchange(comm, nullptr)));
    EXPECT_LT(steady_clock::now() - start, milliseconds(10000));
    if (rank == 0) first_destroyed.count_down();
    waiter.join();
    for (ccomMessage_t message : messages) finish(message, ccomAborted);
  });
}

// After a failure nothing writes to the receiver's buffer.
TEST_P(MessageEnds, NothingIsWrittenAfterwards) {
  with_message_ranks(2, {.way = GetParam()}, [](int rank, ccomComm_t comm) {
    std::vector<char> data(32 << 20, 1);
    if (rank == 0) {
      ccomMessage_t message = send(data.data(), data.size(), 1, 0, comm);
      ccomMessageWait(message, -1, nullptr);
      ccomMessageFree(message);
    } else {
      ccomMessage_t message = receive(data.data(), data.size(), 0, 0, comm);
      std::this_thread::sleep_for(milliseconds(3));  // some of it has come
      EXPECT_OK(ccomCommAbort(comm));
      ccomMessageWait(message, -1, nullptr);
      ccomMessageFree(message);
      data.assign(data.size(), 9);
      std::this_thread::sleep_for(milliseconds(50));  // for what comes late
      EXPECT_EQ(std::count(data.begin(), data.end(), 9), static_cast<std::ptrdiff_t>(data.size()));
    }
  });
}

TEST(MessageErrors, AForkedChildIsRefused) {
  with_message_ranks(1, {}, [](int, ccomComm_t comm) {
    int x = 0;
    ccomMessage_t message = receive(&x, sizeof x, 0, 0, comm);
    EXPECT_TRUE(holds_in_child([&] {
      return ccomMessageTest(message, nullptr) == ccomInvalidUsage &&
             ccomMessageWait(message, 0, nullptr) == ccomInvalidUsage &&
             ccomMessageSend(&x, 4, 0, 0, comm, nullptr, nullptr, nullptr) == ccomInvalidUsage &&
             ccomMessageFree(message) == ccomSuccess;
    }));
    finish(send(&x, sizeof x, 0, 0, comm));
    finish(message);
  });
}

}  // namespace
}  // namespace ccom
