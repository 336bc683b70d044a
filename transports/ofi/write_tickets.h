// SPDX-License-Identifier: Apache-2.0
//
// Pairs peers' writes with their headers: the payload (the provider has reported the write's immediate) and the header
// (received as a message). They may arrive in either order; only both together are a fragment.
//
// An immediate is ticket x 2^20 + index. A ticket stands for one channel's slots, or for one message's target, whose
// fragments the sender numbers from 0. An index is used once until it is consumed, so writes are unambiguous.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "transports/ofi/wire.h"

namespace ccom::ofi {

class OfiChannel;

inline constexpr uint32_t kIndexBits = 20;
inline constexpr uint32_t kMaxTickets = (uint32_t{1} << (32 - kIndexBits)) - 1;  // none gives kInline

constexpr uint32_t immediate_of(uint32_t ticket, uint32_t index) { return ticket << kIndexBits | index; }
constexpr uint32_t ticket_of(uint32_t immediate) { return immediate >> kIndexBits; }
constexpr uint32_t index_of(uint32_t immediate) { return immediate & ((uint32_t{1} << kIndexBits) - 1); }

class WriteTickets {
 public:
  // A ticket with `spots` indices; nothing if all tickets are in use. `message`: the owner of the target; none for
  // slots.
  std::optional<uint32_t> open(OfiChannel& channel, std::optional<uint64_t> message, size_t spots);
  // Allocates nothing: the transport stops so, without memory too.
  void close(uint32_t ticket) noexcept;

  struct Match {
    OfiChannel* channel = nullptr;  // null: the other half is still missing
    bool is_slot = false;
    Header header{};
  };
  // A write has arrived. Nothing if it is unexpected.
  std::optional<Match> on_written(uint32_t immediate);
  // An authenticated header. An error if its ticket is not `channel`'s, or if it was announced before.
  Result<Match> on_header(OfiChannel& channel, const Header& header);

  // Whether the write of that fragment of the channel has arrived, or was not awaited any more.
  bool has_arrived(const OfiChannel& channel, const Header& header) const;

  // Headers whose payload is missing.
  size_t awaited() const { return awaited_; }

 private:
  struct Spot {
    bool is_written = false;
    std::optional<Header> header{};
    // The last fragment that has used it: message and offset, which grow.
    std::optional<std::pair<uint64_t, uint64_t>> last{};
  };
  struct Ticket {
    OfiChannel* channel = nullptr;  // null: unused
    std::optional<uint64_t> message{};
    std::vector<Spot> spots{};
  };
  Spot* find(uint32_t immediate);
  Match take(const Ticket& ticket, Spot& spot);

  std::vector<Ticket> tickets_;
  std::vector<uint32_t> free_;
  size_t awaited_ = 0;
};

}  // namespace ccom::ofi
