// SPDX-License-Identifier: Apache-2.0
//
// What the calls of one rank were and what they took, in the board of its host: per collective and size class, and for
// whom they waited.
//
// Written by whoever has the rank's turn, and, where that is said, by others; anybody reads. Every word is right by
// itself, two of them may be one call apart; who waited for whom is read as a whole.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/collective.h"
#include "observe/sequence_lock.h"

namespace ccom {

// Of a call's unit on one rank: up to 64 bytes, 1 KiB, 16 KiB, 256 KiB, 4 MiB, and more.
inline constexpr size_t kSizeClasses = 6;
constexpr size_t size_class(uint64_t bytes) {
  return bytes <= 64          ? 0
         : bytes > (4U << 20) ? kSizeClasses - 1
                              : (static_cast<size_t>(std::bit_width(bytes - 1)) - 3) / 4;
}
static_assert(size_class(64) == 0 && size_class(65) == 1 && size_class(1024) == 1 && size_class(1025) == 2);
static_assert(size_class(16384) == 2 && size_class(262144) == 3 && size_class(4U << 20) == 4);

// Zeroed memory is an empty one.
struct alignas(64) CallCounters {
  static constexpr size_t kCollectives = kCollectiveTraits.size();
  static constexpr size_t kPeers = 16;
  struct Cell {
    std::atomic<uint64_t> calls, bytes;  // exact; of calls that have ended
    std::atomic<uint64_t> timed, ns;     // so many of them were timed, and took so long together
    std::atomic<uint64_t> waited_ns;     // of all calls, in waits that lasted about a microsecond or longer
  };
  // Its place is where more than half of the time was waited, if there is such a one.
  struct Peer {
    std::atomic<uint64_t> rank;             // plus 1; 0: none
    std::atomic<uint64_t> ns, too_many_ns;  // waited for it; of these, at most so many were for others
    std::atomic<uint64_t> waits;
    std::atomic<uint64_t> place;                     // site, and above it the collective
    std::atomic<uint64_t> place_ns, place_waits;     // at least so much there
    std::atomic<uint64_t> votes_ns;                  // there, less what was waited elsewhere meanwhile
    std::atomic<uint64_t> longest_ns, longest_call;  // there; number of the call, or none in sends and receives
  };
  static constexpr uint64_t kNoNumber = UINT64_MAX;
  struct Wait {
    Collective collective = Collective::AllReduce;
    uint64_t bytes = 0;  // of the call's unit
    uint64_t ns = 0;
    Rank peer = -1;  // -1: for nobody that is known
    uint64_t call = kNoNumber;
    uint32_t site = 0;  // TextTable's reference
  };
  std::array<std::array<Cell, kSizeClasses>, kCollectives> cells;
  SequenceLock peers_lock;
  std::array<Peer, kPeers> peers;

  // Of calls of that size.
  Cell& cell_of(Collective collective, uint64_t bytes) {
    return cells[static_cast<size_t>(collective)][size_class(bytes)];
  }
  static void count(Cell& cell, uint64_t bytes) {
    add(cell.calls, 1);
    add(cell.bytes, bytes);
  }
  // Of sends, receives and messages, which have several writers.
  void count_message(uint64_t bytes) {
    Cell& cell = cell_of(Collective::SendReceive, bytes);
    cell.calls.fetch_add(1, std::memory_order_relaxed);
    cell.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void count_time(Collective collective, uint64_t bytes, uint64_t ns) {
    Cell& cell = cell_of(collective, bytes);
    add(cell.timed, 1);
    add(cell.ns, ns);
  }
  // By one thread at a time.
  void count_wait(const Wait& wait);

 private:
  static void add(std::atomic<uint64_t>& word, uint64_t more) {
    word.store(word.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
};

// What they say, as values.
struct CallTotals {
  struct Of {
    Collective collective = Collective::AllReduce;
    size_t size_class = 0;
    uint64_t calls = 0, bytes = 0;
    double seconds = 0;    // of all calls, as far as those that were timed tell
    bool is_exact = true;  // all were timed
    double waited_seconds = 0;
    uint64_t timed = 0;  // calls, and what they took
    double timed_seconds = 0;
  };
  struct WaitedFor {
    Rank rank = -1;
    double seconds = 0;
    double too_many_seconds = 0;  // of these, at most so many were for other ranks
    uint64_t waits = 0;
    Collective collective = Collective::AllReduce;  // where most of it was waited
    uint32_t site = 0;                              // likewise; TextTable's reference
    double place_seconds = 0;                       // there, at least
    uint64_t place_waits = 0;                       // likewise
    double longest_seconds = 0;                     // of one wait there
    uint64_t longest_call = 0;                      // its number; 0: it was in sends and receives
  };
  std::vector<Of> calls;              // those of which there were any
  std::vector<WaitedFor> waited_for;  // the longest first
};
CallTotals totals_of(const CallCounters& counters);

}  // namespace ccom
