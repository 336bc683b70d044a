// SPDX-License-Identifier: Apache-2.0
//
// What lies where in the memory that the ranks of a host share. Every byte has one writer (but for counts of sleepers).
//
//   lines[ranks]   what everybody looks at in every call, close together: few pages for the processor to look up
//     line[2]        arrivals, used in turn: number of the barrier, the call's hash, up to 48 bytes of payload
//     sleepers, has_left
//     descriptor[2]  the calls that the lines belong to, for error texts
//   ahead[ranks]   the same with 128 lines, for calls in which ranks go ahead of others
//   a block for each rank, of whole pages:
//     mail[2]        payload of small calls that does not fit into a line; of two ranks the reader may spoil it
//     ahead_mail[]   the same, shorter, for calls in which ranks go ahead of others: ahead_mails()
//     counts[2]      what the rank says of its parts in v-forms (part_counts.h)
//     stage, partial, result    two banks each, for the tiles of larger calls; memory is taken when first used
//     long_mails     longer ones, one behind the other (mail_ring.h); memory is taken when first used
//
// All zero is the initial state. Nothing read from here can lead outside of it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "plan/node_plan.h"

namespace ccom {

inline constexpr size_t kLinePayloadBytes = 48;
inline constexpr size_t kMailBytes = size_t{8} << 10;
inline constexpr size_t kAheadMailBytes = size_t{1} << 10;
inline constexpr uint32_t kMeetBanks = 2;
// Powers of two, because numbers wrap; tests/models explores fewer.
#ifndef CCOM_AHEAD_BANKS
#define CCOM_AHEAD_BANKS 128
#endif
inline constexpr uint32_t kAheadBanks = CCOM_AHEAD_BANKS;
static_assert((kAheadBanks & (kAheadBanks - 1)) == 0 && kAheadBanks > kMeetBanks);
inline constexpr size_t kLongMails = 8;  // of the greatest length
inline constexpr size_t kNodePageBytes = 4096;

// Of numbers of barriers, which wrap.
inline bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

// One coherence transfer carries everything that a tiny call says.
struct alignas(64) FlagLine {
  std::byte payload[kLinePayloadBytes];  // in front: a vector of the whole line loaded from here stays in the line
  uint64_t hash;
  std::atomic<uint64_t> word;  // number of the barrier << 32 | half of the call's hash; written last
};
static_assert(sizeof(FlagLine) == 64 && std::atomic<uint64_t>::is_always_lock_free);

template <uint32_t banks>
struct alignas(128) RankLines {
  FlagLine line[banks];
  std::atomic<uint32_t> sleepers;  // waiting in the kernel for this rank's next arrival
  std::atomic<uint32_t> has_left;  // touches nobody's buffers any more
  alignas(64) std::array<uint64_t, 5> descriptor[banks];
};
static_assert(sizeof(RankLines<kMeetBanks>) == 384);

// A value. Ranks are counted from 0 in the order of the host's ranks.
struct NodeLayout {
  int ranks = 0;
  size_t bank_bytes = 0;  // of stage; a multiple of the page size

  // A rank's piece of a tile, with room for rounding.
  size_t result_bytes() const {
    return round_up(bank_bytes / static_cast<size_t>(ranks > 2 ? ranks : 2) + kNodePageBytes);
  }
  // Fewer than lines, because they are longer: those of two ranks, whose calls are the fastest, stay in the first
  // cache.
  uint32_t ahead_mails() const { return std::min<uint32_t>(kAheadBanks, ranks > 2 ? 64 : 32); }
  size_t lines_bytes() const { return bytes_of_lines<kMeetBanks>() + bytes_of_lines<kAheadBanks>(); }
  // Of a bank: the barrier's number, how long equal parts are, and three lists of a word for each rank.
  size_t counts_bytes() const { return (2 + 3 * static_cast<size_t>(ranks)) * sizeof(uint64_t); }
  // Of a block, what is there from the start.
  size_t mail_bytes() const { return counts_offset(0) + round_up(kMeetBanks * counts_bytes()); }
  size_t staging_bytes() const { return kNodeBanks * (bank_bytes + 2 * result_bytes()); }
  size_t long_mail_bytes() const { return std::max(kMailBytes, bank_bytes / 4); }
  // The most that a rank can show in a call of lines and mail, if there is a root, and so long mail.
  size_t small_bytes(bool has_root) const { return has_root ? long_mail_bytes() : kMailBytes; }
  size_t block_bytes() const { return long_mails_offset() + round_up(kLongMails * long_mail_bytes()); }
  size_t region_bytes() const { return lines_bytes() + block_bytes() * static_cast<size_t>(ranks); }

  template <uint32_t banks>
  RankLines<banks>& lines(std::byte* region, int rank) const {
    std::byte* const begin = banks == kMeetBanks ? region : region + bytes_of_lines<kMeetBanks>();
    return reinterpret_cast<RankLines<banks>*>(begin)[rank];
  }
  size_t block_offset(int rank) const { return lines_bytes() + block_bytes() * static_cast<size_t>(rank); }
  // Within a rank's block.
  template <uint32_t banks>
  static size_t mail_offset(size_t bank) {
    return banks == kMeetBanks ? bank * kMailBytes : kMeetBanks * kMailBytes + bank * kAheadMailBytes;
  }
  size_t counts_offset(size_t bank) const {
    return kMeetBanks * kMailBytes + ahead_mails() * kAheadMailBytes + bank * counts_bytes();
  }
  size_t long_mails_offset() const { return mail_bytes() + staging_bytes(); }
  size_t stage_offset(size_t bank) const { return mail_bytes() + bank * bank_bytes; }
  size_t result_offset(size_t bank) const { return stage_offset(kNodeBanks) + bank * result_bytes(); }
  size_t partial_offset(size_t bank) const { return result_offset(kNodeBanks) + bank * result_bytes(); }

 private:
  template <uint32_t banks>
  size_t bytes_of_lines() const {
    return round_up(static_cast<size_t>(ranks) * sizeof(RankLines<banks>));
  }
  static size_t round_up(size_t bytes) { return (bytes + kNodePageBytes - 1) / kNodePageBytes * kNodePageBytes; }
};

}  // namespace ccom
