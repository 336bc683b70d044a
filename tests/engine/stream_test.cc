// SPDX-License-Identifier: Apache-2.0
//
// The queue behind a stream: order, errors, and how often its thread is woken. Gates make what the thread is doing
// certain, so nothing here depends on how fast it is.
#include "engine/stream.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <vector>

namespace ccom {
namespace {

using std::chrono::milliseconds;

// Work that says when it has begun, and then waits until it may end.
class Gate {
 public:
  Work work() {
    return [this] {
      begun_.release();
      may_end_.acquire();
      return Status();
    };
  }
  void await_begin() { begun_.acquire(); }
  void open() { may_end_.release(); }

 private:
  std::binary_semaphore begun_{0}, may_end_{0};
};

// Longer than the thread polls.
void let_sleep() { std::this_thread::sleep_for(milliseconds(50)); }

// Fails if each call wakes the thread.
TEST(Stream, ABurstCostsNoMoreThanOneWakeUp) {
  Stream stream;
  Gate gate;
  std::vector<int> order;
  stream.enqueue(gate.work());
  gate.await_begin();
  const uint64_t before = stream.wakeups();
  EXPECT_LE(before, 1U);
  for (int i = 0; i < 1000; ++i) {
    stream.enqueue([&order, i] {
      order.push_back(i);
      return Status();
    });
  }
  EXPECT_EQ(stream.query().code(), Code::InProgress);
  gate.open();
  EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
  EXPECT_EQ(stream.wakeups(), before);
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

// And that the count counts: an idle thread does sleep.
TEST(Stream, WorkWakesAThreadThatSleeps) {
  Stream stream;
  for (uint64_t i = 0; i < 3; ++i) {
    for (int tries = 0; stream.wakeups() == i && tries < 100; ++tries) {
      let_sleep();
      stream.enqueue([] { return Status(); });
      EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
    }
    EXPECT_EQ(stream.wakeups(), i + 1);
  }
}

TEST(Stream, TheFirstErrorStaysUntilItIsAskedFor) {
  Stream stream;
  std::vector<Code> seen;
  const auto look = [&seen](const Status& state) { seen.push_back(state.code()); };
  Gate gate;
  stream.enqueue(gate.work());  // so that all that follows is one batch
  stream.enqueue_callback(look);
  stream.enqueue([] { return error(Code::Timeout, "first"); });
  stream.enqueue_callback(look);
  stream.enqueue([]() -> Status { throw std::runtime_error("second"); });
  stream.enqueue_callback(look);
  gate.open();
  EXPECT_EQ(stream.synchronize(std::nullopt).code(), Code::Timeout);
  EXPECT_EQ(seen, (std::vector{Code::Ok, Code::Timeout, Code::Timeout}));
  EXPECT_TRUE(stream.query().is_ok());
  EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
}

TEST(Stream, AnExceptionBecomesAnError) {
  Stream stream;
  stream.enqueue([]() -> Status { throw std::runtime_error("broken"); });
  const Status status = stream.synchronize(std::nullopt);
  EXPECT_EQ(status.code(), Code::InternalError);
  EXPECT_NE(status.message().find("broken"), std::string::npos);
}

TEST(Stream, SynchronizeGivesUpAtItsDeadline) {
  Stream stream;
  Gate gate;
  stream.enqueue(gate.work());
  EXPECT_EQ(stream.synchronize(Deadline::after(milliseconds(0))).code(), Code::Timeout);
  EXPECT_EQ(stream.synchronize(Deadline::after(milliseconds(20))).code(), Code::Timeout);
  gate.open();
  EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
}

TEST(Stream, CallbacksMayEnqueue) {
  Stream stream;
  std::atomic<int> ran{0};
  stream.enqueue_callback([&stream, &ran](const Status&) { stream.enqueue([&ran] { return ++ran, Status(); }); });
  EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(stream.query().is_ok());
}

// What work keeps is let go of before its stream says that it is done, also in the middle of a batch.
TEST(Stream, WorkIsGoneWhenTheNextBegins) {
  Stream stream;
  Gate gate;
  auto kept = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = kept;
  bool gone = false;
  stream.enqueue(gate.work());
  stream.enqueue([kept = std::move(kept)] { return Status(); });
  stream.enqueue([&] {
    gone = watched.expired();
    return Status();
  });
  gate.open();
  EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
  EXPECT_TRUE(gone);
}

TEST(Stream, TheDestructorRunsWhatIsQueued) {
  int ran = 0;
  {
    Stream stream;
    for (int i = 0; i < 100; ++i) stream.enqueue([&ran] { return ++ran, Status(); });
  }
  EXPECT_EQ(ran, 100);
  { const Stream unused; }
  Stream idle;
  let_sleep();
}

TEST(Stream, EventsJoinTwoStreams) {
  Stream first, second;
  Event event;
  Gate gate;
  std::atomic<bool> done{false}, in_order{false};
  first.enqueue(gate.work());
  first.enqueue([&done] {
    done = true;
    return Status();
  });
  first.record(event);
  second.wait_for(event, milliseconds(60000));
  second.enqueue([&] {
    in_order = done.load();
    return Status();
  });
  EXPECT_EQ(event.recorded()->poll(), std::nullopt);
  EXPECT_EQ(event.recorded()->wait(Deadline::after(milliseconds(0))).code(), Code::InProgress);
  gate.open();
  EXPECT_TRUE(second.synchronize(std::nullopt).is_ok());
  EXPECT_TRUE(in_order);
  EXPECT_TRUE(event.recorded()->wait(std::nullopt).is_ok());
}

// It waited without bound, so that whoever waited for the stream did too.
TEST(Stream, DoesNotWaitForAnEventForEver) {
  Stream first, second;
  Gate gate;
  Event event;
  first.enqueue(gate.work());
  first.record(event);
  second.wait_for(event, milliseconds(20));
  bool has_run = false;
  second.enqueue([&has_run] {
    has_run = true;
    return Status();
  });
  const Status waited = second.synchronize(std::nullopt);
  EXPECT_EQ(waited.code(), Code::Timeout) << waited.message();
  EXPECT_TRUE(has_run) << "an error does not end the stream";
  gate.open();
  EXPECT_TRUE(first.synchronize(std::nullopt).is_ok());
}

TEST(Stream, AnotherThreadRunsWhatIsNextInOrder) {
  Stream stream;
  Gate gate;
  std::atomic<int> ran{0};
  stream.enqueue(gate.work());
  gate.await_begin();
  stream.enqueue([&]() -> Status {
    EXPECT_EQ(++ran, 1);
    EXPECT_TRUE(stream.is_called_by_work());
    EXPECT_FALSE(stream.run_next()) << "within a piece of work none begins";
    return error(Code::Timeout, "of this piece");
  });
  stream.enqueue([&ran] { return ++ran, Status(); });
  EXPECT_FALSE(stream.run_next()) << "one runs";
  EXPECT_FALSE(stream.is_called_by_work());
  gate.open();
  while (ran < 2) (void)stream.run_next();
  EXPECT_EQ(stream.synchronize(std::nullopt).code(), Code::Timeout);
  EXPECT_FALSE(stream.run_next()) << "nothing is queued";
}

// Fails if the thread is woken for what is waited for at once.
TEST(Stream, WorkThatIsWaitedForAtOnceWakesNobody) {
  Stream stream;
  constexpr int kCalls = 2000;
  std::atomic<int> ran{0};
  for (int i = 1; i <= kCalls; ++i) {
    stream.enqueue([&ran] { return ++ran, Status(); });
    while (ran < i) (void)stream.run_next();
  }
  EXPECT_LE(stream.wakeups(), kCalls / 20U);
  stream.enqueue([&ran] { return ++ran, Status(); });  // the thread takes it, since nobody comes
  EXPECT_TRUE(stream.synchronize(Deadline::after_ms(60000)).is_ok());
  EXPECT_EQ(ran, kCalls + 1);
}

// Fails if who synchronizes leaves what is queued to the thread.
TEST(Stream, WhoSynchronizesRunsWhatIsQueued) {
  Stream stream;
  constexpr int kCalls = 2000;
  int ran = 0, here = 0;
  for (int i = 0; i < kCalls; ++i) {
    stream.enqueue([&ran, &here, self = std::this_thread::get_id()] {
      ++ran;
      here += std::this_thread::get_id() == self ? 1 : 0;
      return Status();
    });
    EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
    EXPECT_EQ(ran, i + 1);
  }
  EXPECT_GE(here, kCalls / 2);
  EXPECT_LE(stream.wakeups(), kCalls / 20U);
}

TEST(Stream, WhoSynchronizesUntilADeadlineRunsNothing) {
  Stream stream;
  for (int i = 0; i < 100; ++i) {
    std::thread::id ran;
    stream.enqueue([&ran] { return ran = std::this_thread::get_id(), Status(); });
    EXPECT_TRUE(stream.synchronize(Deadline::after_ms(60000)).is_ok());
    EXPECT_NE(ran, std::this_thread::get_id());
  }
}

// The stream's thread goes on without being woken, also where it has looked on in the meantime.
TEST(Stream, ItsThreadGoesOnWhereAnotherHasStopped) {
  Stream stream;
  for (int i = 0; i < 20; ++i) {
    Gate gate;
    stream.enqueue(gate.work());
    std::thread other([&] { (void)stream.run_next(); });
    gate.await_begin();  // in whichever thread
    std::thread::id ran;
    stream.enqueue([&ran] { return ran = std::this_thread::get_id(), Status(); });
    let_sleep();
    gate.open();
    other.join();
    EXPECT_TRUE(stream.synchronize(Deadline::after_ms(60000)).is_ok());
    EXPECT_NE(ran, std::this_thread::get_id());
  }
}

TEST(Stream, TwoThreadsRunEverythingOnce) {
  Stream stream;
  constexpr size_t kPieces = 20000;
  std::vector<size_t> order;
  std::thread other([&] {
    for (int tries = 0; tries < 200000; ++tries) (void)stream.run_next();
  });
  for (size_t i = 0; i < kPieces; ++i) {
    stream.enqueue([&order, i] { return order.push_back(i), Status(); });
    if (i % 3 == 0) (void)stream.run_next();
  }
  EXPECT_TRUE(stream.synchronize(std::nullopt).is_ok());
  other.join();
  ASSERT_EQ(order.size(), kPieces);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

// Handlers of signals are the application's and run in its threads.
TEST(Stream, LeavesSignalsToTheApplication) {
  Stream stream;
  sigset_t blocked;
  ::sigemptyset(&blocked);
  stream.enqueue([&blocked] {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return Status();
  });
  ASSERT_TRUE(stream.synchronize(Deadline::after_ms(60000)).is_ok());  // by the stream's thread
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) EXPECT_EQ(::sigismember(&blocked, number), 1);
}

}  // namespace
}  // namespace ccom
