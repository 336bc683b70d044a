// SPDX-License-Identifier: Apache-2.0
//
// What one rank does and did, as plain words in the board of its host. Zeroed memory is a rank that has done nothing.
//
//   calls      the last calls, and how many have ended: by whoever has the rank's turn, with every call
//   times      when calls began and ended, and for whom the rank waits: likewise, where the clock is read anyway
//   messages   how many are not complete, and the one for which a thread has waited longest (message_activity.h)
//   counters   call_counters.h
//   texts      call sites and algorithms to which calls refer
//   pulse      by the liveness thread: that the process runs, and since when the number of ended calls has not changed
//   place      by the liveness thread, when somebody asks: where the rank is outside of calls (locator.h), or in which
//              call of another communicator (listing.h)
//
// Times are of CLOCK_MONOTONIC, in nanoseconds, which is one clock for all processes of a host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "observe/call_counters.h"
#include "observe/call_record.h"
#include "observe/sequence_lock.h"
#include "observe/text_table.h"

namespace ccom {

struct ActivityRecord {
  struct Times {
    SequenceLock lock;
    std::atomic<uint64_t> begun, begun_ns;  // number of the last call whose beginning is known, and when that was
    std::atomic<uint64_t> ended, ended_ns;  // likewise its end
    std::atomic<uint64_t> waits_in;         // number of the call that waits; 0: none does
    std::atomic<uint64_t> waits_for;        // rank
    std::atomic<uint64_t> waits_since_ns;
  };
  struct Transfers {
    std::atomic<uint64_t> turns;  // odd while this rank is in sends and receives that block
    std::atomic<uint64_t> site;   // TextTable's reference
  };
  struct Messages {
    static constexpr size_t kSiteBytes = 120;
    std::atomic<uint64_t> pending;
    SequenceLock lock;
    std::atomic<uint64_t> waits_since_ns;  // 0: no thread waits
    std::atomic<uint64_t> sends, tag, bytes;
    std::atomic<uint64_t> peer;  // plus 1; 0: any rank
    std::array<std::atomic<uint64_t>, kSiteBytes / 8> site;
  };
  struct Pulse {
    SequenceLock lock;
    std::atomic<uint64_t> beat_ns;         // the liveness thread ran
    std::atomic<uint64_t> ended, seen_ns;  // calls that had ended by then, and when it first saw so many
    std::atomic<uint64_t> transfers;       // likewise
  };
  struct Place {
    static constexpr size_t kTextBytes = 312;
    std::atomic<uint32_t> asked;     // incremented by who wants to know
    std::atomic<uint32_t> can_tell;  // 1: the process has a locator, or other communicators
    SequenceLock lock;
    std::atomic<uint64_t> answered;  // the question that the text answers
    std::atomic<uint64_t> told_ns;
    std::array<std::atomic<uint64_t>, kTextBytes / 8> words;
  };

  CallRecord calls;
  alignas(64) Times times;
  Transfers transfers;
  alignas(64) Messages messages;
  CallCounters counters;
  TextTable texts;
  alignas(64) Pulse pulse;
  Place place;
};

}  // namespace ccom
