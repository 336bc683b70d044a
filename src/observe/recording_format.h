// SPDX-License-Identifier: Apache-2.0
//
// What a recorder's file consists of: calls in a ring, and what they refer to. Little-endian words; a file is read on a
// machine of the same order of bytes.
//
//   header           who recorded, on which clock; its magic word is stored last of all
//   sites            by CallSite: checked reference to its text
//   algorithms       by number: likewise
//   communicators    each with the call that it is in
//   texts            appended, never changed
//   records          a ring of calls that have ended
//
// Written by plain stores into a shared mapping: whenever the process is killed, the kernel keeps what it had stored.
// Whatever consists of several words says whether it is whole, by a word that is 0 while the others change or that is
// stored last; two threads may write one record if one of them stood still while all others were written. And all that
// names something has a checksum, so that a wrong byte is never taken for what a rank did.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace ccom::recording {

using Word = std::atomic<uint64_t>;

inline void set(Word& word, uint64_t value) { word.store(value, std::memory_order_relaxed); }
inline uint64_t get(const Word& word) { return word.load(std::memory_order_relaxed); }
// After all that was stored before.
inline void publish(Word& word, uint64_t value) { word.store(value, std::memory_order_release); }

inline constexpr uint64_t kMagic = 0x31306365726d6363;  // "ccmrec01"
inline constexpr uint64_t kVersion = 2;
inline constexpr size_t kSites = 8192, kAlgorithms = 512;
inline constexpr uint64_t kLeastBytes = uint64_t{256} << 10, kMostBytes = uint64_t{16} << 30;

// Differs, but for one in 2^32, where any of the words does.
constexpr uint64_t check_of(std::initializer_list<uint64_t> words) {
  uint64_t sum = 0x1d8e4e27c47d124fU;
  for (const uint64_t word : words) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
    sum ^= sum >> 29;
  }
  return sum >> 32;
}
inline uint64_t check_of(std::string_view text) {
  uint64_t sum = text.size();
  for (size_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, text.size() - at < sizeof word ? text.size() - at : sizeof word);
    sum = check_of({sum, word});
  }
  return sum;
}
// A number of 32 bits with its check.
constexpr uint64_t checked(uint64_t number) { return number | check_of({number}) << 32; }
inline constexpr uint64_t kWrong = UINT64_MAX;  // no such number
constexpr uint64_t unchecked(uint64_t word) {
  const uint64_t number = word & 0xffffffffU;
  return word == 0 || word == checked(number) ? number : kWrong;
}

// A text's place in words after the start of the texts, plus 1; 0: none. There lies its length in bytes with its check
// behind it in the same word, then its bytes.
using TextReference = uint32_t;
inline constexpr uint64_t kNoText = kWrong;  // there was no room for it

// A moment on three clocks; `check` makes it whole.
struct Point {
  Word ticks, monotonic_ns, realtime_ns, check;
};

struct Header {
  Word magic;
  Word version;
  Word file_bytes;  // which say where everything lies: layout_of
  Word pid;
  Word host, machine, program;  // references to texts. Machines with equal texts have one CLOCK_MONOTONIC
  Word check;                   // of all these
  std::array<Point, 3> points;  // the first, then the last two in turn
  alignas(64) Word claimed;     // records, in blocks
  alignas(64) Word text_used;   // bytes
  Word lost_texts;              // that found no room
  Word lost_communicators;
};
static_assert(sizeof(Header) <= 4096);

// Threads take so many records at a time.
inline constexpr uint64_t kBlock = 16;

// A call. Of a call that has ended `ticket` counts records from 1; of a communicator's current one it is 1, or 0.
struct Record {
  Word ticket;
  Word begun;   // ticks
  Word ended;   // likewise
  Word kind;    // base/call.h
  Word count;   // of elements; of sends and receives, in bytes
  Word call;    // number, communicator's place, code of its error
  Word waited;  // ticks, rank it waited for longest, turn of the communicator's place
  Word origin;  // site, algorithm, checksum
};
static_assert(sizeof(Record) == 64);

struct Values {
  uint64_t ticket, begun, ended, kind, count, call, waited, origin;
  friend bool operator==(const Values&, const Values&) = default;
};

constexpr uint64_t check_of(const Values& v) {
  const uint64_t sum = v.ticket * 0x9e3779b97f4a7c15U + v.begun * 0xbf58476d1ce4e5b9U + v.ended * 0x94d049bb133111ebU +
                       v.kind * 0xd6e8feb86659fd93U + v.count * 0xa0761d6478bd642fU + v.call * 0xe7037ed1a0b428dbU +
                       v.waited * 0x8ebc6af09c88c6e3U + (v.origin & 0xffffffffU) * 0x589965cc75374cc3U +
                       0x1d8e4e27c47d124fU;
  return sum >> 32;
}
constexpr uint64_t check_of(uint64_t ticks, uint64_t monotonic_ns, uint64_t realtime_ns) {
  return (ticks * 0x9e3779b97f4a7c15U + monotonic_ns * 0xbf58476d1ce4e5b9U + realtime_ns * 0x94d049bb133111ebU) | 1;
}

inline constexpr int kNumberBits = 40, kPlaceBits = 16;
constexpr uint64_t pack_call(uint64_t number, uint64_t place, uint64_t code) {
  return (number & ((uint64_t{1} << kNumberBits) - 1)) | place << kNumberBits | code << (kNumberBits + kPlaceBits);
}
constexpr uint64_t number_of(uint64_t call) { return call & ((uint64_t{1} << kNumberBits) - 1); }
constexpr uint64_t place_of(uint64_t call) { return call >> kNumberBits & 0xffff; }
constexpr uint64_t code_of(uint64_t call) { return call >> (kNumberBits + kPlaceBits); }

// In units of 64 ticks; longer waits than fit are cut off at half an hour or more.
inline constexpr int kWaitBits = 36, kPeerBits = 20, kWaitUnit = 64;
constexpr uint64_t pack_waited(uint64_t ticks, int64_t peer, uint64_t turn) {
  constexpr uint64_t kMost = (uint64_t{1} << kWaitBits) - 1, kMostPeer = (uint64_t{1} << kPeerBits) - 1;
  const uint64_t units = ticks / kWaitUnit < kMost ? ticks / kWaitUnit : kMost;
  const uint64_t rank = static_cast<uint64_t>(peer + 1) < kMostPeer ? static_cast<uint64_t>(peer + 1) : 0;
  return units | rank << kWaitBits | (turn & 0xff) << (kWaitBits + kPeerBits);
}
constexpr uint64_t waited_ticks(uint64_t waited) { return (waited & ((uint64_t{1} << kWaitBits) - 1)) * kWaitUnit; }
constexpr int64_t peer_of(uint64_t waited) {
  return static_cast<int64_t>(waited >> kWaitBits & ((uint64_t{1} << kPeerBits) - 1)) - 1;
}
constexpr uint64_t turn_of(uint64_t waited) { return waited >> (kWaitBits + kPeerBits); }

constexpr uint64_t pack_origin(uint64_t site, uint64_t algorithm) { return site | algorithm << 16; }
constexpr uint64_t site_of(uint64_t origin) { return origin & 0xffff; }
constexpr uint64_t algorithm_of(uint64_t origin) { return origin >> 16 & 0xffff; }

// Places are used again when there are no others: the one that was closed first. Records of communicators that had the
// place before have another turn. `current` is the call, or the sends and receives, that have begun and not ended; for
// a moment they may be in the ring already.
struct Communicator {
  Word state;  // PlaceState; stored last
  Word turn;
  Word number, parent;  // of the communicator, the same on all ranks; of that it is a part of, or 0
  Word rank, ranks;
  Word name;                    // reference
  Word topology;                // a reference to its JSON; 0: a part of its parent's, or there was no room
  Word origins;                 // a reference to its ranks' ranks in the parent, as 32-bit numbers; 0: none
  Word opened, closed;          // ticks
  Word waits_for, waits_since;  // checked rank plus 1, while the current call waits, else 0; ticks
  Word costs;                   // a reference to what was measured at its start, as JSON; 0: nothing, or no room
  Word check;                   // of all that does not change while it is open
  alignas(64) Record current;
};
static_assert(sizeof(Communicator) == 192);
enum class PlaceState : uint64_t { None, Open, Closed };

// The checks of a header and of a communicator. word: reads the word so many bytes behind their beginning.
template <typename Read>
uint64_t check_of_header(const Read& word) {
  return check_of({word(offsetof(Header, version)), word(offsetof(Header, file_bytes)), word(offsetof(Header, pid)),
                   word(offsetof(Header, host)), word(offsetof(Header, machine)), word(offsetof(Header, program))});
}
template <typename Read>
uint64_t check_of_communicator(const Read& word) {
  return check_of({word(offsetof(Communicator, turn)), word(offsetof(Communicator, number)),
                   word(offsetof(Communicator, parent)), word(offsetof(Communicator, rank)),
                   word(offsetof(Communicator, ranks)), word(offsetof(Communicator, name)),
                   word(offsetof(Communicator, topology)), word(offsetof(Communicator, origins)),
                   word(offsetof(Communicator, opened)), word(offsetof(Communicator, costs))});
}

// Where everything lies in a file of so many bytes: a sixteenth each for texts and communicators, the rest for records.
struct Layout {
  uint64_t sites_at, algorithms_at, communicators_at, communicators, texts_at, text_bytes, records_at, records;
};
constexpr Layout layout_of(uint64_t file_bytes) {
  Layout layout{};
  layout.sites_at = 4096;
  layout.algorithms_at = layout.sites_at + kSites * sizeof(Word);
  layout.communicators_at = layout.algorithms_at + kAlgorithms * sizeof(Word);
  const uint64_t most = uint64_t{1} << kPlaceBits, wanted = file_bytes / 16 / sizeof(Communicator);
  layout.communicators = wanted < most ? wanted : most;
  layout.texts_at = layout.communicators_at + layout.communicators * sizeof(Communicator);
  layout.text_bytes = file_bytes / 16 / 64 * 64;
  layout.records_at = layout.texts_at + layout.text_bytes;
  layout.records = (file_bytes - layout.records_at) / sizeof(Record) / kBlock * kBlock;
  return layout;
}

}  // namespace ccom::recording
