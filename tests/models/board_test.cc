// SPDX-License-Identifier: Apache-2.0
//
// src/liveness/board.cc and call_record.h: the first error, departures, the sequence lock of the stragglers and the
// ring of the last calls. Not modelled: robust futexes, which the kernel writes.
#include "liveness/board.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/futex.h"
#include "mutations.h"

namespace ccom::model {
namespace {

alignas(4096) std::array<std::byte, 65536> memory;

void declare_call(const CallRecord& calls, size_t turn) {
  const auto& call = calls.by_turn[turn];
  for (const auto* const word : {&call.count, &call.kind, &call.origin, &call.results}) declare(*word, "call");
}

struct Host {
  Host() : board(*Board::over(memory, 2)) {
    auto* const header = reinterpret_cast<BoardHeader*>(memory.data());
    declare(header->abort_word, "abort_word");
    declare(header->departure, "departure");
    for (auto& history : header->departure_histories) declare(history, "history");
    declare(reinterpret_cast<std::atomic<uint64_t>&>(header->straggler_lock), "version");
    declare(header->straggler_calls, "calls");
    declare(header->straggler_count, "count");
    for (const int i : {0, 1}) declare(header->straggler_ranks[i], "rank");
    for (const int i : {0, 1, 2}) declare(header->lost[i], "lost");
    for (const int i : {0, 1}) {
      declare(board.slot(i).state, "state");
      declare(board.slot(i).history, "own history");
      declare(board.slot(i).activity.calls.begun, "begun");
    }
    declare_call(board.slot(0).activity.calls, 1);
  }
  Board board;
};

// Runs of `begin`; of at most so many steps of a thread, unless it is 0.
Explore exploring(const std::function<Program()>& begin, int most_thread_steps = 0) {
  return [=](Options options) {
    options.most_thread_steps = most_thread_steps;
    return explore(memory, begin, options);
  };
}

const uint32_t* futex_of(const std::atomic<uint32_t>& word) { return reinterpret_cast<const uint32_t*>(&word); }

// Two ranks have an error; a third thread sleeps until there is one, as the liveness thread does.
TEST(BoardModel, OneErrorAndAllOfIt) {
  const auto explore_errors = exploring([] {
    auto host = std::make_shared<Host>();
    auto won = std::make_shared<std::array<bool, 2>>();
    const auto expect_error = [host] {
      const std::string text = host->board.error().message();
      check(text == "first" || text == "second", "not an error that somebody has published");
    };
    Program program;
    for (int rank : {0, 1}) {
      program.threads.push_back([=] {
        const Status error(Code::Aborted, rank == 0 ? "first" : "second");
        (*won)[static_cast<size_t>(rank)] = host->board.publish(rank, error);
        expect_error();
      });
    }
    program.threads.push_back([=] {
      while (host->board.error().is_ok()) futex_wait(futex_of(host->board.abort_word()), 0, std::chrono::seconds(1));
      expect_error();
    });
    program.finish = [won] { check((*won)[0] != (*won)[1], "not one error"); };
    return program;
  });
  expect_all_needed(explore_errors, {{"modify abort_word acq_rel -> release", "who comes second reads it in error()"}});
}

TEST(BoardModel, TheFirstDepartureStays) {
  const auto explore_departures = exploring([] {
    auto host = std::make_shared<Host>();
    Program program;
    program.threads.push_back([=] {
      host->board.slot(0).activity.calls.begin({1, 10, 100});
      host->board.depart(0, 7, 11);
    });
    program.threads.push_back([=] { host->board.note_departure({3, 5, 13}); });
    program.threads.push_back([=] {
      const auto before = host->board.first_departure();
      if (host->board.has_left(0))
        check(host->board.slot(0).activity.calls.begun.load(std::memory_order_relaxed) == 1,
              "calls of a rank that left");
      const auto after = host->board.first_departure();
      check(!before || (after && *after <= *before), "a departure that goes");
      if (after) check(after->history == 0 || after->history == (after->rank == 7 ? 11 : 13), "another's history");
    });
    program.finish = [host] { check(host->board.first_departure() == Departure{1, 7, 11}, "not the first"); };
    return program;
  });
  const char* const elsewhere = "for who reads it before the rank has left; see RecordedCallsAreWhole";
  expect_all_needed(explore_departures, {{"modify departure acq_rel -> release", "who modifies it reads nothing else"},
                                         {"store state seq_cst -> release", "see OneOfTwoRanksThatLeaveFindsTheOther"},
                                         {"store begun release -> relaxed", elsewhere},
                                         {"store call release -> relaxed", elsewhere}});
}

// Two ranks leave at once, and look who has left: one of them finds the other.
TEST(BoardModel, OneOfTwoRanksThatLeaveFindsTheOther) {
  const auto explore_departures = exploring([] {
    auto host = std::make_shared<Host>();
    auto found = std::make_shared<std::array<std::optional<Departure>, 2>>();
    Program program;
    for (const int slot : {0, 1}) {
      program.threads.push_back([=] {
        host->board.depart(slot, slot, static_cast<uint16_t>(11 + slot));
        (*found)[static_cast<size_t>(slot)] = host->board.departure_of(1 - slot, 1 - slot);
      });
    }
    program.finish = [found] {
      check((*found)[0] || (*found)[1], "nobody has found the other");
      for (const int slot : {0, 1}) {
        const std::optional<Departure>& other = (*found)[static_cast<size_t>(slot)];
        check(!other || *other == Departure{0, 1 - slot, static_cast<uint16_t>(12 - slot)}, "another departure");
      }
    };
    return program;
  });
  const char* const elsewhere = "see TheFirstDepartureStays";
  expect_all_needed(explore_departures, {{"modify departure acq_rel -> acquire", elsewhere},
                                         {"modify departure acq_rel -> release", elsewhere}});
}

// Two processes note lost ranks, one of them the same; a third reads the list twice.
TEST(BoardModel, EachLostRankIsNotedOnce) {
  const auto explore_losses = exploring([] {
    auto host = std::make_shared<Host>();
    Program program;
    auto news = std::make_shared<std::array<int, 2>>();
    program.threads.push_back([=] { (*news)[0] = host->board.note_lost(3) + host->board.note_lost(5); });
    program.threads.push_back([=] { (*news)[1] = host->board.note_lost(5); });
    program.threads.push_back([=] {
      const std::vector<Rank> before = host->board.lost(), after = host->board.lost();
      check(after.size() >= before.size() && std::equal(before.begin(), before.end(), after.begin()),
            "a list that changes at its front");
    });
    program.finish = [=] {
      std::vector<Rank> found = host->board.lost();
      std::ranges::sort(found);
      check(found == std::vector<Rank>{3, 5}, "not each once");
      check((*news)[0] + (*news)[1] == 2, "not each new to one of them");
    };
    return program;
  });
  expect_all_needed(explore_losses);
}

TEST(BoardModel, ReportsOfStragglersAreWhole) {
  const auto explore_reports = exploring(
      [] {
        Board::over(memory, 2)->publish_stragglers({4, {1}, false, {}});
        auto host = std::make_shared<Host>();
        Program program;
        program.threads.push_back([=] { host->board.publish_stragglers({5, {2, 3}, false, {}}); });
        program.threads.push_back([=] {
          const StragglerReport found = host->board.stragglers();
          const bool is_first = found.calls == 4 && found.ranks == std::vector<Rank>{1};
          const bool is_second = found.calls == 5 && found.ranks == std::vector<Rank>{2, 3};
          check(is_first || is_second, "a torn report");
        });
        return program;
      },
      18);  // three attempts
  expect_all_needed(explore_reports);
}

// A rank begins calls 16, 17 and 18, of which 17 takes the place of 1; another looks for calls 1 and 17.
TEST(BoardModel, RecordedCallsAreWhole) {
  const auto call = [](uint64_t number) { return CallDescriptor{number, 10 * number, 100 * number, 1000 * number}; };
  const auto explore_calls = exploring([call] {
    auto* const record = &reinterpret_cast<BoardSlot*>(memory.data() + sizeof(BoardHeader))->activity.calls;
    for (uint64_t number = 1; number <= 15; ++number) record->begin(call(number));
    declare(record->begun, "begun");
    for (const size_t turn : {0, 1, 2}) declare_call(*record, turn);
    Program program;
    program.threads.push_back([=] {
      for (uint64_t number : {16, 17, 18}) record->begin(call(number), {static_cast<uint32_t>(number), 1});
    });
    program.threads.push_back([=] {
      for (uint64_t number : {1, 17}) {
        CallOrigin origin{static_cast<uint32_t>(number), 1};
        const auto found = record->find(number, &origin);
        check(!found || *found == call(number), "a torn call");
        check(!found || number < 16 || origin.site == number, "a call with the origin of another");
      }
    });
    program.finish = [=] { check(record->last() == call(18), "not the last call"); };
    return program;
  });
  expect_all_needed(explore_calls);
}

// Two updates of two words, and a reader: of observe/sequence_lock.h, and so of all records that use it.
TEST(BoardModel, UpdatesUnderASequenceLockAreWhole) {
  struct Locked {
    SequenceLock lock;
    std::atomic<uint64_t> a, b;
  };
  const auto explore_updates = exploring(
      [] {
        auto* const locked = reinterpret_cast<Locked*>(memory.data());
        declare(reinterpret_cast<std::atomic<uint64_t>&>(locked->lock), "version");
        declare(locked->a, "word");
        declare(locked->b, "word");
        Program program;
        program.threads.push_back([=] {
          for (const uint64_t value : {1, 2}) {
            locked->lock.write([&] {
              locked->a.store(value, std::memory_order_release);
              locked->b.store(value, std::memory_order_release);
            });
          }
        });
        program.threads.push_back([=] {
          uint64_t a = 0, b = 0;
          const bool is_whole = locked->lock.read([&] {
            a = locked->a.load(std::memory_order_acquire);
            b = locked->b.load(std::memory_order_acquire);
          });
          check(!is_whole || a == b, "parts of two updates");
        });
        return program;
      },
      18);
  expect_all_needed(explore_updates);
}

}  // namespace
}  // namespace ccom::model
