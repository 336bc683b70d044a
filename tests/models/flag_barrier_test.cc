// SPDX-License-Identifier: Apache-2.0
//
// src/node/flag_barrier.cc and fences.cc: the barrier of a host's ranks, with its two banks of payload, its sleep and
// wake-up, and its leaving after an error.
#include "node/flag_barrier.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "mutations.h"

namespace ccom::model {
namespace {

// One that never fails.
class QuietMonitor final : public Monitor {
 public:
  QuietMonitor() { abort_word_ = &none_; }
  std::string control_address() const override { return {}; }
  Status connect(const std::vector<std::string>&, const WaitLimit&) override { return {}; }
  Status status() const override { return {}; }
  Status report(const Status& error) override { return error; }
  Status look() override { return {}; }
  Status check() override { return {}; }
  void on_failure(std::function<void()>) override {}
  void depart() override {}
  std::optional<Status> find_departed(const std::vector<Rank>&) const override { return {}; }
  bool has_ended(int) const override { return false; }
  std::chrono::milliseconds warn_after() const override { return {}; }
  std::vector<Rank> find_stragglers() override { return {}; }
  void compare_calls() override {}
  void end_comparison() override {}

 private:
  std::atomic<uint32_t> none_{0};
};

alignas(4096) std::array<std::byte, size_t{3} * 65536> memory;

enum class Waits { Poll, Sleep };

struct Host {
  Host(int ranks, bool is_asymmetric, Waits waits) : layout{.ranks = ranks, .bank_bytes = 4096} {
    for (int rank = 0; rank < ranks; ++rank) {
      RankLines& lines = layout.lines(memory.data(), rank);
      for (FlagLine& line : lines.line) declare(line.word, "word");
      declare(lines.sleepers, "sleepers");
      declare(lines.has_left, "has_left");
    }
    for (int rank = 0; rank < ranks; ++rank) {
      FlagBarrier::Config config{.local_rank = rank, .ranks = {}, .asymmetric = is_asymmetric, .policy = {}};
      for (int other = 0; other < ranks; ++other) config.ranks.push_back(other);
      config.policy = {.spin = {}, .yield = std::chrono::hours(waits == Waits::Poll ? 1 : 0), .yields_per_clock = 1};
      barriers.push_back(std::make_unique<FlagBarrier>(std::move(config), memory.data(), layout, monitor,
                                                       [](const CallWords&) { return std::string("a call"); }));
    }
  }
  NodeLayout layout;
  QuietMonitor monitor;
  std::vector<std::unique_ptr<FlagBarrier>> barriers;
};

std::span<std::byte> region_of(const NodeLayout& layout) { return {memory.data(), layout.lines_bytes()}; }

uint64_t& word_in(std::byte* payload) { return *reinterpret_cast<uint64_t*>(payload); }

void pass_barriers(FlagBarrier& barrier, int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    barrier.begin({static_cast<uint64_t>(round)}, std::chrono::milliseconds(1000));
    const auto sent = static_cast<uint64_t>(100 * round);
    word_in(barrier.payload()) = sent + static_cast<uint64_t>(barrier.local_rank());
    barrier.arrive();
    check(barrier.await_all().is_ok(), "an error");
    for (int other = 0; other < barrier.size(); ++other) {
      const uint64_t got = word_in(const_cast<std::byte*>(barrier.payload_of(other)));
      check(got == sent + static_cast<uint64_t>(other), "not what was sent");
    }
    forget(static_cast<uint64_t>(round));
  }
}

Outcome explore_barriers(int ranks, int rounds, bool is_asymmetric, Waits waits, Options options = {}) {
  options.yields_wait = waits == Waits::Poll;
  return explore(
      region_of({.ranks = ranks, .bank_bytes = 4096}),
      [=] {
        auto host = std::make_shared<Host>(ranks, is_asymmetric, waits);
        Program program;
        for (int rank = 0; rank < ranks; ++rank)
          program.threads.push_back([=] { pass_barriers(*host->barriers[static_cast<size_t>(rank)], rounds); });
        return program;
      },
      options);
}

// Rank 0 shows its buffer at barrier 1, fails after `passed` barriers, and writes to its buffer when all are out of it.
// Rank 1 reads the buffer, if nobody has left, and finds the failure after barrier 2.
Outcome explore_leaving(uint32_t passed, Options options) {
  options.yields_wait = true;
  const NodeLayout layout{.ranks = 2, .bank_bytes = 4096};
  uint64_t& buffer = word_in(memory.data() + 2048);
  return explore(
      region_of(layout),
      [=, &buffer] {
        auto host = std::make_shared<Host>(2, true, Waits::Poll);
        Program program;
        program.threads.push_back([=, &buffer] {
          FlagBarrier& barrier = *host->barriers[0];
          barrier.begin({1}, std::chrono::milliseconds(1000));
          while (barrier.number() < passed) barrier.arrive();
          barrier.say_left();
          check(barrier.await_leavers(1, 2), "rank 1 does not get out");
          buffer = 1;
        });
        program.threads.push_back([=, &buffer] {
          FlagBarrier& barrier = *host->barriers[1];
          barrier.begin({1}, std::chrono::milliseconds(1000));
          barrier.arrive();
          check(barrier.await(0).is_ok(), "an error");
          if (!barrier.has_anybody_left()) check(buffer == 0, "a buffer that its owner uses again");
          if (passed == 2) {
            barrier.arrive();
          } else {
            barrier.say_left();
          }
        });
        return program;
      },
      options);
}

bool is_long() { return std::getenv("CCOM_TEST_LONG") != nullptr; }

TEST(FlagBarrierModel, RanksThatPoll) {
  expect_all_needed([](const Options& options) { return explore_barriers(2, 5, true, Waits::Poll, options); });
  expect_right(explore_barriers(3, is_long() ? 6 : 3, true, Waits::Poll));
}

TEST(FlagBarrierModel, RanksThatSleepBehindFences) {
  expect_all_needed(
      [](const Options& options) { return explore_barriers(2, 2, false, Waits::Sleep, options); },
      {{"fence seq_cst after modify sleepers relaxed -> none", "the kernel compares behind one of its own"}});
}

TEST(FlagBarrierModel, RanksThatSleepBehindMembarrier) {
  expect_all_needed([](const Options& options) { return explore_barriers(2, 2, true, Waits::Sleep, options); });
}

TEST(FlagBarrierModel, LeavingAfterAnErrorWithinTheCall) {
  expect_all_needed([](const Options& options) { return explore_leaving(1, options); },
                    {{"load word acquire -> relaxed", "orders what is read behind a barrier; see RanksThatPoll"},
                     {"store word release -> relaxed", "the same"}});
}

TEST(FlagBarrierModel, LeavingAfterTheLastBarrier) {
  expect_all_needed([](const Options& options) { return explore_leaving(2, options); },
                    {{"load has_left acquire -> relaxed", "rank 1 does not leave before its last barrier here"},
                     {"store has_left release -> relaxed", "the same"}});
}

}  // namespace
}  // namespace ccom::model
