// SPDX-License-Identifier: Apache-2.0
//
// The exploration that is under way, as instrumentation.cc sees it: what the code under test does.
#pragma once

#include <ucontext.h>

#include <deque>
#include <unordered_set>

#include "explorer.h"

namespace ccom::model {

class Exploration {
 public:
  Exploration(std::span<std::byte> region, const Options& options);
  Outcome explore(const std::function<Program()>& begin);
  // The one whose thread runs now; null in between.
  static Exploration* of_this_thread();

  bool is_shared(const volatile void* address) const { return memory_.is_shared(address); }
  void declare(const volatile void* address, size_t bytes, const std::string& name);
  // A check has failed: ends the run, and the exploration.
  void refuse(const char* what);
  // Memory of threads; all of it is gone when the run ends, because their stacks are then left as they are.
  void* allocate(size_t bytes);
  static bool has_allocated(const void* memory);

  // By the thread that runs now. Each is one step.
  uint64_t load(const volatile void* address, Order order);
  void store(const volatile void* address, uint64_t value, Order order);
  uint64_t modify(const volatile void* address, Order order, const std::function<uint64_t(uint64_t)>& change);
  // Returns what was read: `expected` if it was replaced.
  uint64_t compare_exchange(const volatile void* address, uint64_t expected, uint64_t desired, Order order,
                            Order failure);
  void fence(Order order);
  void forget(uint64_t local);
  void spin();
  void yield() {
    if (options_.yields_wait) spin();
  }
  int futex_wait(const uint32_t* word, uint32_t expected);
  void futex_wake(const uint32_t* word);
  void membarrier();  // a step for each other thread
  // No step of its own.
  void plain(const volatile void* address, size_t bytes, bool is_write);

 private:
  enum class State : uint8_t { Ready, Spinning, Asleep, Ended };
  enum class Kind : uint8_t { Start, Load, Store, Modify, Fence, Spin, FutexWait, FutexWake, Membarrier };
  struct Thread {
    int index = 0;
    ucontext_t context{};
    std::vector<std::byte> stack;
    State state = State::Ready;
    uint64_t trace = 0;         // of the results of all steps so far
    std::vector<int> loaded{};  // locations, since the last spin()
    const uint32_t* sleeps_on = nullptr;
    uint32_t last = 0;  // key of the last operation
    int steps = 0;
  };
  struct Site {
    std::string text;
    Order order;
    bool is_dropped = false, is_mutated = false;
    uint64_t count = 0;
  };
  struct Choice {
    int chosen, count;
  };
  struct Step {
    int thread;
    const Site* site;
    uint64_t value;
  };
  // While it exists, allocations are the explorer's own.
  class Inside;

  static void enter();
  void run_once(const std::function<Program()>& begin);
  void start(Thread& thread);
  bool backtrack();
  int choose(size_t count);
  void schedule();
  void fail(const std::string& what);
  void end_run();
  bool can_run(const Thread& thread) const;
  bool is_known_state();
  Thread& self() { return threads_[static_cast<size_t>(current_)]; }
  int declared(const volatile void* address) const;
  Site& visit(Kind kind, int location, Order order);
  std::string text_of(uint32_t key) const;
  void record(const Site& site, uint64_t value);

  const std::span<std::byte> region_;
  const Options options_;
  Memory memory_;
  std::vector<std::string> names_;  // of locations
  std::deque<Thread> threads_;
  std::vector<std::function<void()>> bodies_;
  int current_ = -1;
  bool is_in_run_ = false;
  ucontext_t main_{};
  std::vector<Choice> choices_;
  size_t depth_ = 0;
  int steps_ = 0;
  std::vector<int> ready_;
  std::unordered_set<uint64_t> known_;
  std::vector<Step> history_;
  std::unordered_map<uint32_t, Site> sites_;
  std::vector<std::byte> arena_;
  size_t allocated_ = 0;
  bool is_whole_ = false;  // the run went to its end
  Outcome outcome_;
};

}  // namespace ccom::model
