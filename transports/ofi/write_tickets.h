// SPDX-License-Identifier: Apache-2.0
//
// Where peers' writes land, and what is known of each: its bytes (the provider has shown the write's immediate) and its
// header (a message has told what it is). Either may come first; only both together are a fragment.
//
// An immediate names a spot: ticket x 2^20 + index. A ticket is one channel's slots, or one message's target, whose
// fragments the sender numbers from 0. A spot is used once until it was taken, so nothing else tells writes apart.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "transports/ofi/wire.h"

namespace ccom::ofi {

class OfiChannel;

inline constexpr uint32_t kIndexBits = 20;
inline constexpr uint32_t kMostTickets = (uint32_t{1} << (32 - kIndexBits)) - 1;  // so that none gives kInline

constexpr uint32_t landing_of(uint32_t ticket, uint32_t index) { return ticket << kIndexBits | index; }
constexpr uint32_t ticket_of(uint32_t landing) { return landing >> kIndexBits; }
constexpr uint32_t index_of(uint32_t landing) { return landing & ((uint32_t{1} << kIndexBits) - 1); }

class WriteTickets {
 public:
  // A ticket with `spots` spots; nothing if all are in use. `message`: whose target it is; nothing for slots.
  std::optional<uint32_t> open(OfiChannel& channel, std::optional<uint64_t> message, size_t spots);
  void close(uint32_t ticket);

  struct Match {
    OfiChannel* channel = nullptr;  // null: the other half is missing yet
    bool is_slot = false;
    Header header{};
  };
  // A write has arrived. Nothing if nobody waits for such a one.
  std::optional<Match> on_written(uint32_t landing);
  // A header that is believed. An error if its landing is not `channel`'s, or was told of before.
  Result<Match> on_header(OfiChannel& channel, const Header& header);

  // Headers whose bytes are not here yet.
  size_t awaited() const { return awaited_; }

 private:
  struct Spot {
    bool is_written = false;
    std::optional<Header> header{};
  };
  struct Ticket {
    OfiChannel* channel = nullptr;  // null: free
    std::optional<uint64_t> message{};
    std::vector<Spot> spots{};
  };
  Spot* find(uint32_t landing);
  Match take(const Ticket& ticket, Spot& spot);

  std::vector<Ticket> tickets_;
  std::vector<uint32_t> free_;
  size_t awaited_ = 0;
};

}  // namespace ccom::ofi
