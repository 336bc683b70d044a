// SPDX-License-Identifier: Apache-2.0
//
// Turns: one at a time and in order until the order ends; then nobody waits but for everything to be over.
#include "comm/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace ccom {
namespace {

using std::chrono::milliseconds;

Deadline soon() { return Deadline::after(milliseconds(20)); }

TEST(Turns, AreGivenInTheOrderOfTickets) {
  Turns turns;
  std::vector<Turns::Ticket> tickets(8);
  for (Turns::Ticket& ticket : tickets) ticket = turns.take();
  std::vector<size_t> order;
  std::vector<std::jthread> threads;
  for (size_t i = tickets.size(); i-- > 0;) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(turns.wait(tickets[i]));
      order.push_back(i);
      turns.pass(tickets[i]);
    });
  }
  threads.clear();
  for (size_t i = 0; i < tickets.size(); ++i) EXPECT_EQ(order[i], i);
  EXPECT_TRUE(turns.take().is_first) << "nobody is left in line";
}

TEST(Turns, AreWaitedForUntilTheDeadline) {
  Turns turns;
  Turns::Ticket running = turns.take(), next = turns.take();
  EXPECT_TRUE(turns.wait(running));
  EXPECT_FALSE(turns.wait(next, soon()));
  turns.pass(running);
  EXPECT_TRUE(turns.wait(next, soon())) << "it is still in line";
  turns.pass(next);
}

TEST(Turns, AreNotWaitedForAfterTheEnd) {
  Turns turns;
  Turns::Ticket running = turns.take(), queued = turns.take(), waiting = turns.take();
  std::jthread waits([&] {
    EXPECT_FALSE(turns.wait(waiting));
    turns.leave(waiting);
  });
  turns.end_order();
  waits.join();
  Turns::Ticket later = turns.take(), last = turns.take();
  EXPECT_FALSE(turns.wait(later));
  turns.leave(later);
  std::jthread waits_for_all([&] { turns.wait_for_all(last); });
  turns.leave(queued);
  std::this_thread::sleep_for(milliseconds(5));  // it waits by now
  EXPECT_FALSE(turns.take().is_first) << "one is running";
  turns.pass(running);
}

TEST(Turns, ThatAreLeftLetTheNextOneRunAtOnce) {
  Turns turns;
  turns.leave(turns.take());
  EXPECT_TRUE(turns.take().is_first);
}

// Whoever comes second revokes the bias towards the first, in whatever that one is doing.
TEST(Turns, AreOneAtATimeWhenASecondThreadComes) {
  for (int round = 0; round < 300; ++round) {
    Turns turns;
    int made = 0;  // by whoever has the turn
    std::atomic<int> inside = 0;
    const auto work = [&](int count) {
      for (int i = 0; i < count; ++i) {
        Turns::Ticket ticket = turns.take();
        ASSERT_TRUE(turns.wait(ticket));
        ASSERT_EQ(inside.fetch_add(1, std::memory_order_relaxed), 0);
        ++made;
        inside.fetch_sub(1, std::memory_order_relaxed);
        turns.pass(ticket);
      }
    };
    std::atomic<bool> begins = false;
    std::vector<std::jthread> others;
    for (int other = 0; other < 2; ++other) {
      others.emplace_back([&, other] {
        while (!begins) std::this_thread::yield();
        for (int spin = 0; spin < (round + other) * 10; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        work(50);
      });
    }
    turns.pass(turns.take());  // this thread is the first
    begins = true;
    work(2000);
    others.clear();
    ASSERT_EQ(made, 2100);
  }
}

TEST(Turns, OfTheFirstThreadKeepTheirPlaceWhenASecondOneComes) {
  Turns turns;
  Turns::Ticket mine = turns.take();
  ASSERT_TRUE(mine.is_first);
  std::atomic<bool> has_run = false;
  std::jthread other([&] {
    Turns::Ticket theirs = turns.take();
    EXPECT_FALSE(theirs.is_first);
    EXPECT_TRUE(turns.wait(theirs));
    has_run = true;
    turns.pass(theirs);
  });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(has_run);
  turns.pass(mine);
  other.join();
  EXPECT_TRUE(has_run);
}

// The first thread may still be leaving its last turn.
TEST(Turns, AreDestroyedByASecondThreadThatHasSeenTheLastOneEnd) {
  for (int round = 0; round < 500; ++round) {
    auto turns = std::make_unique<Turns>();
    std::atomic<bool> has_begun = false;
    std::jthread first([&, taken = turns.get()] {
      Turns::Ticket ticket = taken->take();
      has_begun = true;
      taken->pass(ticket);
    });
    while (!has_begun) std::this_thread::yield();
    Turns::Ticket last = turns->take();
    turns->wait_for_all(last);
    turns.reset();
  }
}

// Who waits for all, and then destroys, does so when everybody has let go of it; and turns stay one at a time.
TEST(Turns, AreAllOverWhenTheLastOneDestroysThem) {
  constexpr int kTickets = 6;
  for (int round = 0; round < 500; ++round) {
    auto turns = std::make_unique<Turns>();
    int in_turn = 0;  // by whoever has the turn
    std::vector<std::jthread> threads;
    std::vector<Turns::Ticket> tickets(kTickets);
    for (Turns::Ticket& ticket : tickets) ticket = turns->take();
    for (int i = 0; i < kTickets; ++i) {
      threads.emplace_back([&in_turn, i, round, all = turns.get(), ticket = tickets[static_cast<size_t>(i)]]() mutable {
        if ((round + i) % 5 == 0) return all->leave(ticket);
        if (i == round % kTickets) {
          all->wait_for_all(ticket);
        } else if (!all->wait(ticket)) {
          return all->leave(ticket);
        }
        ++in_turn;
        all->pass(ticket);
      });
    }
    Turns::Ticket last = turns->take();
    turns->wait_for_all(last);
    ++in_turn;
    turns.reset();
  }
}

}  // namespace
}  // namespace ccom
