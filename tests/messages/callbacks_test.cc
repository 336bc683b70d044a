// SPDX-License-Identifier: Apache-2.0
//
// Functions of messages, threads that share a communicator, and handles.
#include <atomic>
#include <mutex>
#include <tuple>

#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"
#include "tests/messages/ranks.h"

namespace ccom {
namespace {

struct Outcome {
  std::atomic<int> calls{0};
  std::atomic<int> result{-1};
  std::atomic<int> peer{-2};
};

void note(void* user, ccomResult_t result, int peer) {
  auto& outcome = *static_cast<Outcome*>(user);
  outcome.result = result;
  outcome.peer = peer;
  ++outcome.calls;
}

TEST(MessageFunctions, AreCalledOnceThoughNobodyWaits) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    std::vector<std::vector<char>> data(100, std::vector<char>(3000));
    std::vector<Outcome> outcomes(data.size());
    for (size_t i = 0; i < data.size(); ++i) {
      const size_t bytes = i % 2 == 0 ? 10 : 3000;
      ASSERT_OK(rank == 0
                    ? ccomMessageSend(data[i].data(), bytes, 1, 0, comm, note, &outcomes[i], nullptr)
                    : ccomMessageRecv(data[i].data(), bytes, CCOM_ANY_RANK, 0, comm, note, &outcomes[i], nullptr));
    }
    for (const Outcome& outcome : outcomes) {
      ASSERT_TRUE(wait_until([&outcome] { return outcome.calls == 1; }));
      EXPECT_OK(outcome.result);
      EXPECT_EQ(outcome.peer, 1 - rank);
    }
    ASSERT_OK(ccomBarrier(comm, nullptr));
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls, 1);
  });
}

TEST(MessageFunctions, HearOfErrorsOnce) {
  std::vector<Outcome> outcomes(2 * 10);
  with_message_ranks(2, {}, [&outcomes](int rank, ccomComm_t comm) {
    static char data[8];
    for (size_t i = 0; i < 10; ++i) {
      Outcome& outcome = outcomes[10 * static_cast<size_t>(rank) + i];
      const int64_t tag = 100 * rank + static_cast<int64_t>(i);
      ASSERT_OK(ccomMessageRecv(data, 8, 1 - rank, tag, comm, note, &outcome, nullptr));
    }
    ASSERT_OK(ccomBarrier(comm, nullptr));
    if (rank == 0) ccomCommAbort(comm);
    for (const Outcome& outcome : outcomes) {
      ASSERT_TRUE(wait_until([&outcome] { return outcome.calls == 1; }));
    }
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.result, ccomAborted);
  }
}

TEST(MessageFunctions, AreDoneWhenDestroyReturns) {
  std::vector<Outcome> outcomes(20);
  with_message_ranks(2, {}, [&outcomes](int rank, ccomComm_t comm) {
    static char data[8];
    for (size_t i = 0; i < 10; ++i) {
      ASSERT_OK(
          ccomMessageRecv(data, 8, 1 - rank, rank, comm, note, &outcomes[10 * static_cast<size_t>(rank) + i], nullptr));
    }
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls, 1);
}

// Each function posts the next message: the chain must not become a pile of calls.
struct Chain {
  ccomComm_t comm = nullptr;
  int peer = 0;
  bool sends = false;
  std::atomic<int> left{0};
  int value = 0;
  static void next(void* user, ccomResult_t result, int) {
    auto& chain = *static_cast<Chain*>(user);
    if (result != ccomSuccess) chain.left = -1000000;
    if (--chain.left <= 0) return;
    chain.post();
  }
  void post() {
    const ccomResult_t posted = sends ? ccomMessageSend(&value, sizeof value, peer, 9, comm, next, this, nullptr)
                                      : ccomMessageRecv(&value, sizeof value, peer, 9, comm, next, this, nullptr);
    if (posted != ccomSuccess) left = -1000000;
  }
};

TEST(MessageFunctions, MayPostMessages) {
  for (const Way& way : {kShm, kTcp}) {
    with_message_ranks(2, {.way = way}, [](int rank, ccomComm_t comm) {
      Chain chain;
      chain.comm = comm;
      chain.peer = 1 - rank;
      chain.sends = rank == 0;
      chain.left = 20000;
      chain.post();
      EXPECT_TRUE(wait_until([&chain] { return chain.left <= 0; })) << chain.left;
      EXPECT_EQ(chain.left, 0);
      ASSERT_OK(ccomBarrier(comm, nullptr));
    });
  }
}

TEST(MessageFunctions, MayWaitForOtherMessagesButNotDestroy) {
  struct Both {
    ccomComm_t comm;
    ccomMessage_t other;
    std::atomic<int> result{-1}, destroyed{-1};
  };
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    std::vector<char> data(100000);
    char small[4] = {};
    Both both{comm, nullptr};
    both.other = rank == 0 ? send(data.data(), data.size(), 1, 1, comm) : receive(data.data(), data.size(), 0, 1, comm);
    const auto done = [](void* user, ccomResult_t, int) {
      auto& b = *static_cast<Both*>(user);
      b.destroyed = ccomCommDestroy(b.comm);
      b.result = ccomMessageWait(b.other, -1, nullptr);
    };
    ASSERT_OK(rank == 0 ? ccomMessageSend(small, 4, 1, 2, comm, done, &both, nullptr)
                        : ccomMessageRecv(small, 4, 0, 2, comm, done, &both, nullptr));
    ASSERT_TRUE(wait_until([&both] { return both.result != -1; }));
    EXPECT_OK(both.result);
    EXPECT_EQ(both.destroyed, ccomInvalidUsage);
    finish(both.other);
  });
}

// A function that blocks holds nobody else up: it might wait for a lock that the waiting thread has.
TEST(MessageFunctions, MayBlockWhileOthersWait) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    std::mutex held;
    char a[4] = {}, b[4] = {};
    std::atomic<bool> called{false};
    std::atomic<bool> entered{false};
    std::tuple<std::mutex*, std::atomic<bool>*, std::atomic<bool>*> user{&held, &entered, &called};
    const auto done = [](void* data, ccomResult_t, int) {
      const auto& [mutex, in, out] = *static_cast<decltype(user)*>(data);
      *in = true;
      const std::lock_guard lock(*mutex);
      *out = true;
    };
    std::unique_lock lock(held);
    if (rank == 0) {
      lock.unlock();
      finish(send(a, 4, 1, 1, comm));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      finish(send(b, 4, 1, 2, comm));
    } else {
      ASSERT_OK(ccomMessageRecv(a, 4, 0, 1, comm, done, &user, nullptr));
      ASSERT_TRUE(wait_until([&entered] { return entered.load(); })) << "in another thread";
      finish(receive(b, 4, 0, 2, comm));
      lock.unlock();
      EXPECT_TRUE(wait_until([&called] { return called.load(); }));
    }
  });
}

TEST(MessageThreads, ManyPostAndWaitOnOneCommunicator) {
  for (const Way& way : {kShm, kMixed}) {
    with_message_ranks(4, {.way = way}, [](int rank, ccomComm_t comm) {
      run_threads(4, [&](int t) {
        for (int i = 0; i < 100; ++i) {
          const size_t bytes = i % 3 == 0 ? 5000 : 16;
          std::vector<int> out(bytes / sizeof(int), 1000 * rank + i), in(out.size(), -1);
          const int to = (rank + 1 + t % 3) % 4;
          const int from = (rank + 3 - t % 3) % 4;
          ccomMessage_t received = receive(in.data(), bytes, from, t, comm);
          finish(send(out.data(), bytes, to, t, comm));
          finish(received);
          ASSERT_EQ(in.back(), 1000 * from + i);
        }
      });
    });
  }
}

TEST(MessageThreads, SeveralMayWaitForOneMessage) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    int value = 0;
    ccomMessage_t message = rank == 0 ? nullptr : receive(&value, sizeof value, 0, 0, comm);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4 && rank == 1; ++t) {
      threads.emplace_back([message] { EXPECT_OK(ccomMessageWait(message, -1, nullptr)); });
    }
    if (rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      finish(send(&value, sizeof value, 1, 0, comm));
    }
    for (std::thread& thread : threads) thread.join();
    if (rank == 1) finish(message);
  });
}

TEST(MessageHandles, MayBeFreedBeforeTheMessageIsComplete) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    std::vector<char> data(100000, static_cast<char>(rank));
    Outcome outcome;
    ccomMessage_t message = nullptr;
    ASSERT_OK(rank == 0 ? ccomMessageSend(data.data(), data.size(), 1, 0, comm, note, &outcome, &message)
                        : ccomMessageRecv(data.data(), data.size(), 0, 0, comm, note, &outcome, &message));
    EXPECT_OK(ccomMessageFree(message));
    EXPECT_TRUE(wait_until([&outcome] { return outcome.calls == 1; }));
    EXPECT_EQ(data[99999], 0);
  });
}

TEST(MessageHandles, MayBeFreedInTheFunction) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    struct Self {
      ccomMessage_t message = nullptr;
      std::atomic<bool> freed{false};
    };
    for (int i = 0; i < 200; ++i) {
      Self self;
      int value = i;
      const auto done = [](void* user, ccomResult_t, int) {
        auto& mine = *static_cast<Self*>(user);
        ccomMessageFree(mine.message);
        mine.freed = true;
      };
      ASSERT_OK(rank == 0 ? ccomMessageSend(&value, 4, 1, 0, comm, done, &self, &self.message)
                          : ccomMessageRecv(&value, 4, 0, 0, comm, done, &self, &self.message));
      ASSERT_TRUE(wait_until([&self] { return self.freed.load(); }));
    }
  });
}

}  // namespace
}  // namespace ccom
