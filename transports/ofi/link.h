// SPDX-License-Identifier: Apache-2.0
//
// All that a rank knows of one peer.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "transports/ofi/channel.h"

namespace ccom::ofi {

struct Link {
  Rank rank = -1;
  uint64_t address = 0;                  // Endpoint::insert()'s number
  std::vector<uint64_t> rail_addresses;  // likewise of Rails; as many as both sides have
  SlotTerms slots;                       // ours, for the peer

  // Handshake. session_in is set as soon as the peer's nonce is known; what proves to know it, or a Welcome,
  // establishes.
  Nonce nonce{};
  Nonce peer_nonce{};
  uint64_t session_in = 0, session_out = 0;  // 0: none yet
  bool has_terms = false;                    // its Welcome is here
  bool is_welcomed = false;                  // ours has gone
  bool hello_due = true, welcome_due = false;
  Clock::time_point greet_at{};  // not before
  int last_error = 0;            // of a greeting, FI_E...
  SendOperation hello, welcome, goodbye, acknowledge;

  std::vector<std::unique_ptr<OfiChannel>> channels;
  std::vector<SendOperation> sends;    // of all channels, for Data and Target
  std::vector<WriteOperation> writes;  // likewise
  std::deque<SendOperation*> outbox;   // to be posted, in order
  bool is_waiting = false;             // the provider refused for the moment; the transport tries again
  Clock::time_point refused_at{};
  std::chrono::nanoseconds refused_for{};  // without a success in between
  size_t unfinished = 0;                   // operations in the outbox or with the provider

  uint64_t sent = 0, acknowledged = 0;  // Data fragments to the peer, ever; and those known to be there
  uint64_t arrived = 0, announced = 0;  // likewise from the peer
  uint64_t awaited = 0;                 // of which only the header is here; not counted as arrived
  std::optional<uint64_t> farewell;     // the peer is leaving, having sent so many
  bool is_dead = false;                 // sends to it fail

  bool is_connected() const { return has_terms && is_welcomed; }
  bool has_left() const { return farewell.has_value() && arrived >= *farewell; }
};

}  // namespace ccom::ofi
