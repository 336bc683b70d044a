// SPDX-License-Identifier: Apache-2.0
//
// Runs threads of production code in every order that the C++ memory model allows.
//
// The code under test is compiled with -fsanitize=thread, but linked to instrumentation.cc instead of the sanitizer's
// library: every atomic operation, fence and plain access, and the futex and membarrier system calls, come here.
// Threads are coroutines of one thread. Before each atomic operation the explorer chooses which thread goes on, and
// with it which store a load reads; it repeats the whole run, depth first, until every choice has been made. A state
// that has been seen before is not continued: two runs are in the same state if every thread has got the same results
// so far and memory is the same (compared by a hash of 64 bits).
//
// A run is wrong if a check fails, plain accesses race, nobody can go on although not all have ended, or it does not
// end. Sleeping in the kernel has no timeout here, so that a lost wake-up shows as "nobody can go on".
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "memory.h"

namespace ccom::model {

// One run: made anew for each.
struct Program {
  std::vector<std::function<void()>> threads;
  std::function<void()> finish = [] {};  // after all have ended, by nobody's thread: checks
};

// A change of the code under test: an operation's order, or the operation itself. A site is what Outcome::sites says.
struct Mutation {
  std::string site;
  Order weaker = Order::Relaxed;
  bool is_dropped = false;  // fences, and the kernel's comparison in a futex wait
};

struct Options {
  uint64_t most_states = 20'000'000;
  int most_steps = 2'000;  // of one run
  // Runs in which a thread makes more steps are not continued: where a thread tries again and again without waiting, as
  // the reader of a sequence lock does. 0: none.
  int most_thread_steps = 0;
  // sched_yield(): waits as spin() does; otherwise it returns at once, for code that yields once and then sleeps.
  bool yields_wait = true;
  std::vector<Mutation> mutations{};
};

struct Outcome {
  std::string wrong;  // empty: nothing found
  std::string trace;  // of the wrong run
  bool is_complete = false;
  uint64_t states = 0, runs = 0;
  std::map<std::string, uint64_t> sites;  // "store word release", "fence seq_cst after load word": how often
  uint64_t mutated = 0;                   // operations that were changed
};

// begin: lays out `region`, which is zeroed before, declares its atomic objects (see declare()), and makes the threads.
Outcome explore(std::span<std::byte> region, const std::function<Program()>& begin, const Options& options = {});

// Within begin().
void declare(const volatile void* address, size_t bytes, const std::string& name);
template <typename Atomic>
void declare(const Atomic& object, const std::string& name) {
  declare(&object, sizeof object, name);
}
// Within threads and finish().
void check(bool holds, const char* what);
// What this thread does from here on depends on `local` alone, whatever it has found so far: runs that differ in
// nothing else are in the same state.
void forget(uint64_t local);
// Waits, without sleeping, until there is news in what this thread has loaded since the last time.
void spin();

}  // namespace ccom::model
