// SPDX-License-Identifier: Apache-2.0
//
// The k-th allocation of the thread that makes progress for messages fails, once or with all later ones, for every k
// there is. That ended the process on the communicator's own thread, and left the progress lock taken for ever on a
// thread that waited. It is the communicator's error now: every message of every rank is complete, its function was
// called once, later calls fail too.
#include <atomic>
#include <barrier>

#include "tests/harness/waiting.h"
#include "tests/messages/ranks.h"

namespace {

constexpr long kNever = -1;

std::atomic<bool> may_fail{false};
std::atomic<int> failures{0};
thread_local long allocations_left = kNever;  // of this thread, until one fails
thread_local bool fails_ever = false;

bool fails() {
  if (allocations_left == kNever || !may_fail || allocations_left-- > 0) return false;
  allocations_left = fails_ever ? 0 : kNever;
  ++failures;
  return true;
}

}  // namespace

#include "tests/operator_new.h"

namespace ccom {
namespace {

constexpr int kRounds = 4;
constexpr size_t kSmall = 16, kLarge = 5000;  // with and without an announcement
constexpr long kMostAllocations = 400;

struct Shortage {
  long after;  // allocations that succeed
  bool is_for_ever;
};

void begin(const Shortage& shortage) {
  fails_ever = shortage.is_for_ever;
  allocations_left = shortage.after;
}
void end() { allocations_left = kNever; }

struct Outcomes {
  std::atomic<int> posted{0}, successes{0}, shortages{0}, others{0};
  int calls() const { return successes + shortages + others; }
};

void note(void* user, ccomResult_t result, int) {
  auto& outcomes = *static_cast<Outcomes*>(user);
  ++(result == ccomSuccess ? outcomes.successes : result == ccomOutOfMemory ? outcomes.shortages : outcomes.others);
}

bool are_all_called(const Outcomes& outcomes) {
  return wait_until([&outcomes] { return outcomes.calls() >= outcomes.posted; });
}

// Of one rank. Each is posted with a function, and nobody waits for it.
struct Traffic {
  explicit Traffic(ccomComm_t communicator, int self) : comm(communicator), rank(self) {}
  void post(bool sends, size_t bytes, int64_t tag, ccomMessageFn done, void* user) {
    ++outcomes.posted;
    const ccomResult_t result = sends ? ccomMessageSend(data, bytes, 1 - rank, tag, comm, done, user, nullptr)
                                      : ccomMessageRecv(data, bytes, 1 - rank, tag, comm, done, user, nullptr);
    if (result == ccomSuccess) return;
    EXPECT_EQ(result, ccomOutOfMemory) << error_text();
    --outcomes.posted;
  }
  void post_round(bool sends) {
    for (int i = 0; i < kRounds; ++i) {
      post(sends, kSmall, 10 + i, note, &outcomes);
      post(sends, kLarge, 20 + i, note, &outcomes);
    }
  }
  ccomComm_t comm;
  int rank;
  char data[kLarge] = {};
  Outcomes outcomes;
};

// What every rank must see in the end: after a failure its error, else success.
void expect_one_end(Traffic& traffic) {
  EXPECT_TRUE(are_all_called(traffic.outcomes)) << traffic.outcomes.calls() << " of " << traffic.outcomes.posted;
  EXPECT_EQ(traffic.outcomes.others, 0);
  if (traffic.rank == 0) may_fail = false;  // whatever is still going on there
  const ccomResult_t last = ccomBarrier(traffic.comm, nullptr);
  EXPECT_EQ(last, failures == 0 ? ccomSuccess : ccomOutOfMemory) << error_text();
  if (failures == 0) return;
  EXPECT_THAT(error_text(), HasSubstr("out of memory"));
  ccomMessage_t later = nullptr;
  ccomResult_t result = ccomMessageSend(traffic.data, 1, 1 - traffic.rank, 99, traffic.comm, nullptr, nullptr, &later);
  if (result == ccomSuccess) result = ccomMessageWait(later, -1, nullptr);
  EXPECT_EQ(result, ccomOutOfMemory) << error_text() << "; and stays";
  EXPECT_OK(ccomMessageFree(later));
}

class NoMemory : public testing::TestWithParam<Way> {
 protected:
  // With more allocations each time, until none is left that could fail. How many there are differs: on a busy machine
  // other threads do what the starved one would have done.
  template <typename Run>
  static void sweep(bool is_for_ever, Run run) {
    failures = 0;
    run(Shortage{kNever, false});  // a process's first call from a place allocates its text; without, it is unknown
    int failed = 0, unscathed = 0;
    const long step = GetParam().name == std::string_view(kOfi.name) ? 15 : 1;  // its start takes half a second
    const int enough = step == 1 ? 4 : 2;                                       // of some 45
    const auto may_end = [&] { return (unscathed >= 3 && failed >= enough) || testing::Test::HasFailure(); };
    for (long k = 0; k < kMostAllocations && !may_end(); k += step) {
      SCOPED_TRACE(testing::Message() << "after " << k << " allocations");
      failures = 0;
      may_fail = true;
      run(Shortage{k, is_for_ever});
      if (failures > 0) ++failed;
      unscathed = failures > 0 ? 0 : unscathed + 1;
    }
    EXPECT_GE(failed, enough) << "there must be some";
  }
};
INSTANTIATE_TEST_SUITE_P(Over, NoMemory, testing::Values(kShm, kTcp, kOfi), way_name);

// `done` of a message that nobody waits for runs on the communicator's thread, which then lacks memory.
void run_dry_in_the_background(const Way& way, Shortage shortage) {
  std::barrier<> is_ready(2);
  with_message_ranks(2, {.way = way}, [shortage, &is_ready](int rank, ccomComm_t comm) {
    Traffic traffic(comm, rank);
    const auto starve = [](void* user, ccomResult_t, int) { begin(*static_cast<Shortage*>(user)); };
    Shortage mine = shortage;
    char first = 0;
    if (rank == 0) {
      EXPECT_OK(ccomMessageRecv(&first, 1, 1, 1, comm, starve, &mine, nullptr));
      traffic.post_round(false);
      traffic.post(true, kLarge, 30, note, &traffic.outcomes);
    }
    is_ready.arrive_and_wait();
    if (rank == 1) {
      EXPECT_OK(ccomMessageSend(&first, 1, 0, 1, comm, nullptr, nullptr, nullptr));
      traffic.post(false, kLarge, 30, note, &traffic.outcomes);
      for (int i = 0; i < kRounds; ++i) traffic.post(true, kSmall, 40 + i, note, &traffic.outcomes);  // nobody expects
      traffic.post_round(true);
    }
    expect_one_end(traffic);
  });
}

TEST_P(NoMemory, OnceInTheBackgroundIsAnErrorOfAllRanks) {
  sweep(false, [](Shortage shortage) { run_dry_in_the_background(GetParam(), shortage); });
}
TEST_P(NoMemory, ForEverInTheBackgroundIsAnErrorOfAllRanks) {
  sweep(true, [](Shortage shortage) { run_dry_in_the_background(GetParam(), shortage); });
}

TEST_P(NoMemory, InAThreadThatWaitsIsAnErrorOfAllRanks) {
  sweep(false, [](Shortage shortage) {
    std::barrier<> is_ready(2);
    with_message_ranks(2, {.way = GetParam()}, [shortage, &is_ready](int rank, ccomComm_t comm) {
      Traffic traffic(comm, rank);
      char last = 0;
      ccomMessage_t awaited = rank == 0 ? receive(&last, 1, 1, 50, comm) : nullptr;
      if (rank == 0) traffic.post_round(false);
      is_ready.arrive_and_wait();
      if (rank == 1) {
        traffic.post_round(true);
        traffic.post(true, 1, 50, note, &traffic.outcomes);
      } else {
        begin(shortage);
        const ccomResult_t result = ccomMessageWait(awaited, -1, nullptr);
        end();
        EXPECT_TRUE(result == ccomSuccess || result == ccomOutOfMemory) << error_text();
        EXPECT_OK(ccomMessageFree(awaited));
      }
      expect_one_end(traffic);
    });
  });
}

// A handle was left that had been freed, when there was no memory for the place in the inbox.
TEST(NoMemoryToPost, RefusesAndLeavesNoHandleOrAcceptsAndCompletes) {
  with_message_ranks(1, {}, [](int, ccomComm_t comm) {
    int refused = 0;
    ccomResult_t result = ccomOutOfMemory;
    ccomMessage_t message = nullptr;
    for (long k = 0; k < 20 && result == ccomOutOfMemory; ++k) {
      SCOPED_TRACE(testing::Message() << "after " << k << " allocations");
      may_fail = true;
      begin({k, false});
      result = ccomMessageSend(nullptr, 0, 0, 1, comm, nullptr, nullptr, &message);
      end();
      may_fail = false;
      if (result == ccomSuccess) break;
      ++refused;
      EXPECT_EQ(result, ccomOutOfMemory) << error_text();
      EXPECT_EQ(message, nullptr);
      EXPECT_OK(ccomBarrier(comm, nullptr)) << "it had no effect";
    }
    EXPECT_GE(refused, 3) << "of the message, of the handle, of the place";
    ASSERT_OK(result);
    finish(message, ccomOutOfMemory);
  });
}

}  // namespace
}  // namespace ccom
