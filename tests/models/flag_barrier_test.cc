// SPDX-License-Identifier: Apache-2.0
//
// src/node/flag_barrier.cc and fences.cc: the barrier of a host's ranks, with its two banks of payload, that of ranks
// that go ahead of others, with four instead of 32, their sleep and wake-up, and leaving after an error.
#include "node/flag_barrier.h"

#include <gtest/gtest.h>

#include "mutations.h"
#include "tests/harness/effort.h"

namespace ccom::model {
namespace {

// One that never fails.
class QuietMonitor final : public Monitor {
 public:
  QuietMonitor() { abort_word_ = &none_; }
  std::shared_ptr<ControlFamily> family() const override { return nullptr; }
  Status prepare(const std::vector<std::vector<HeldConnection>>&) override { return {}; }
  Addresses addresses() const override { return {}; }
  Status connect(const std::vector<Addresses>&, const WaitLimit&) override { return {}; }
  Status status() const override { return {}; }
  Status report(const Status& error) override { return error; }
  Status look() override { return {}; }
  Status check() override { return {}; }
  void on_failure(std::function<void()>) override {}
  Status depart(uint64_t /*history*/) override { return {}; }
  std::optional<Status> find_departed(const std::vector<Rank>&) const override { return {}; }
  Result<Consensus> agree(const ConsensusTerms&, const std::vector<Rank>&, const WaitLimit&) override {
    return error(Code::NotSupported, "nobody agrees here");
  }
  bool has_ended(int) const override { return false; }
  bool has_rank_ended(Rank) const override { return false; }
  std::chrono::milliseconds warn_after() const override { return {}; }
  std::vector<RankActivity> known_activities() const override { return {}; }
  std::vector<RankWaits> known_waits(double /*seconds*/) const override { return {}; }
  std::vector<RankActivity> ask_activities() override { return {}; }
  std::vector<Rank> find_stragglers() override { return {}; }
  void compare_calls() override {}
  void end_comparison() override {}

 private:
  std::atomic<uint32_t> none_{0};
};

alignas(4096) std::array<std::byte, size_t{8} * 65536> memory;

enum class Waits { Poll, Sleep };

template <uint32_t banks>
void declare_lines(RankLines<banks>& lines) {
  for (FlagLine& line : lines.line) declare(line.word, "word");
  declare(lines.sleepers, "sleepers");
  declare(lines.has_left, "has_left");
}

struct Host {
  Host(int ranks, bool is_asymmetric, Waits waits) : layout{.ranks = ranks, .bank_bytes = 4096} {
    for (int rank = 0; rank < ranks; ++rank) {
      declare_lines(layout.lines<kMeetBanks>(memory.data(), rank));
      declare_lines(layout.lines<kAheadBanks>(memory.data(), rank));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      FlagBarrierConfig config{.local_rank = rank, .ranks = {}, .asymmetric = is_asymmetric, .policy = {}};
      for (int other = 0; other < ranks; ++other) config.ranks.push_back(other);
      config.policy = {.spin = {}, .yield = std::chrono::hours(waits == Waits::Poll ? 1 : 0), .yields_per_clock = 1};
      const auto describe = [](const CallWords&) { return std::string("a call"); };
      barriers.push_back(std::make_unique<FlagBarrier>(config, memory.data(), layout, monitor, describe));
      aheads.push_back(std::make_unique<AheadBarrier>(config, memory.data(), layout, monitor, describe));
    }
  }
  NodeLayout layout;
  QuietMonitor monitor;
  std::vector<std::unique_ptr<FlagBarrier>> barriers;
  std::vector<std::unique_ptr<AheadBarrier>> aheads;
};

// The lines, and the blocks with their mails.
std::span<std::byte> region_of(const NodeLayout& layout) { return {memory.data(), layout.region_bytes()}; }

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

// What small calls do (shm_collectives.cc): round r is a broadcast by rank 0 ('b') or a gather by rank 0 ('g'), in
// which ranks go ahead, or a call of all ('a').
void make_calls(FlagBarrier& barrier, AheadBarrier& ahead, std::string_view rounds, bool awaits_room) {
  const int self = barrier.local_rank();
  uint64_t number = 0;
  const auto check_sent = [&](std::byte* mail, int rank) {
    check(word_in(mail) == 100 * number + static_cast<uint64_t>(rank), "not what was sent");
  };
  for (const char kind : rounds) {
    ++number;
    const uint64_t sent = 100 * number + static_cast<uint64_t>(self);
    if (kind == 'a') {
      barrier.begin({number}, std::chrono::milliseconds(1000));
      word_in(barrier.mail(kMailBytes)) = sent;
      barrier.arrive();
      check(barrier.await_all().is_ok(), "an error");
      for (int other = 0; other < barrier.size(); ++other) check_sent(barrier.mail_of(other, kMailBytes), other);
    } else {
      ahead.begin({number}, std::chrono::milliseconds(1000));
      if (awaits_room) check(ahead.await_room(kAheadMailBytes).is_ok(), "an error");
      if (kind == 'g' || self == 0) word_in(ahead.mail(kAheadMailBytes)) = sent;
      ahead.arrive();
      if (kind == 'b' && self != 0) {
        check(ahead.await_payload(0).is_ok(), "an error");
        check_sent(ahead.mail_of(0, kAheadMailBytes), 0);
      }
      if (kind == 'g' && self == 0) {
        check(ahead.await_all().is_ok(), "an error");
        for (int other = 0; other < ahead.size(); ++other) check_sent(ahead.mail_of(other, kAheadMailBytes), other);
      }
    }
    forget(number);
  }
}

Outcome explore_ranks(int ranks, bool is_asymmetric, Waits waits, const std::function<void(Host&, size_t)>& run,
                      Options options) {
  options.yields_wait = waits == Waits::Poll;
  return explore(
      region_of({.ranks = ranks, .bank_bytes = 4096}),
      [=] {
        auto host = std::make_shared<Host>(ranks, is_asymmetric, waits);
        Program program;
        for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank)
          program.threads.push_back([=] { run(*host, rank); });
        return program;
      },
      options);
}

Outcome explore_barriers(int ranks, int rounds, bool is_asymmetric, Waits waits, const Options& options = {}) {
  return explore_ranks(
      ranks, is_asymmetric, waits, [=](Host& host, size_t rank) { pass_barriers(*host.barriers[rank], rounds); },
      options);
}

Outcome explore_calls(int ranks, std::string_view rounds, Waits waits, const Options& options = {},
                      bool awaits_room = true) {
  const auto run = [=](Host& host, size_t rank) {
    make_calls(*host.barriers[rank], *host.aheads[rank], rounds, awaits_room);
  };
  return explore_ranks(ranks, true, waits, run, options);
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

TEST(FlagBarrierModel, RanksAheadOfOthers) {
  for (const std::string_view rounds : {"bbbbbb", "gggggg", "abbabb", "bgabga", "gbbgaa"}) {
    SCOPED_TRACE(rounds);
    expect_right(explore_calls(2, rounds, Waits::Poll));
  }
  expect_all_needed([](const Options& options) { return explore_calls(2, "bbbbbgab", Waits::Poll, options); });
}

class ThreeRanksAhead : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(In, ThreeRanksAhead, testing::Values("bbbbb", "ggggg", "abb", "bga", "gbbg"),
                         [](const auto& in) { return std::string(in.param); });
TEST_P(ThreeRanksAhead, OfOthersAreRight) { expect_right(explore_calls(3, GetParam(), Waits::Poll)); }

TEST(FlagBarrierModel, RanksAheadOfOthersThatSleep) {
  expect_all_needed([](const Options& options) { return explore_calls(2, "bbb", Waits::Sleep, options); });
}

// The fifth broadcast writes to the bank of the first.
TEST(FlagBarrierModel, WithoutRoomWhatOthersReadIsOverwritten) {
  EXPECT_EQ(explore_calls(2, "bbbb", Waits::Poll, {}, false).wrong, "");
  EXPECT_NE(explore_calls(2, "bbbbb", Waits::Poll, {}, false).wrong, "");
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
