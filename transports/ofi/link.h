// SPDX-License-Identifier: Apache-2.0
//
// The state of one peer.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/handshake.h"
#include "base/time.h"
#include "transports/ofi/channel.h"

namespace ccom::ofi {

struct Link {
  Rank rank = -1;
  uint64_t address = 0;                  // number from Endpoint::insert()
  std::vector<uint64_t> rail_addresses;  // the same for Rails; as many as both sides have
  SlotTerms slots;                       // our slots for the peer

  // The higher rank connects, the lower one accepts. The session numbers are set with the Answer: a message that
  // carries ours comes from the peer, also if it overtakes the Confirm.
  Handshake handshake;
  HandshakeMessage heard;  // the peer's last one, which it may repeat
  LinkTerms peer_terms;
  Status disagreement;                       // with these, to be reported when the peer has been answered
  uint64_t session_in = 0, session_out = 0;  // 0: none yet
  bool is_confirmed = false;                 // our Confirm was sent, or the peer's received
  bool greeting_due = false, confirm_due = false;
  Clock::time_point greet_at{};                           // not before
  int last_error = 0;                                     // of a handshake message, FI_E...
  SendOperation greeting, confirm, goodbye, acknowledge;  // greeting: our Hello or Answer
  SendOperation ask, answer;                              // see stranded.cc

  std::vector<std::unique_ptr<OfiChannel>> channels;
  std::vector<SendOperation> sends;    // of all channels, for Data and Target
  std::vector<WriteOperation> writes;  // of all channels, for payloads
  std::deque<SendOperation*> outbox;   // to be posted, in order
  bool is_waiting = false;             // the provider was busy; the transport retries
  Clock::time_point refused_at{};
  std::chrono::nanoseconds refused_for{};  // since the last success
  size_t unfinished = 0;                   // operations queued or with the provider

  uint64_t sent = 0, acknowledged = 0;     // Data fragments sent in total; and acknowledged
  uint64_t arrived = 0, announced = 0;     // the same from the peer
  uint64_t awaited = 0;                    // only the header was received; not counted as arrived
  std::optional<uint64_t> goodbye_count;   // the peer is leaving after sending that many
  bool is_cut = false;                     // and its writes need not arrive
  bool is_told = false;                    // that we are leaving
  bool is_dead = false;                    // sends to it fail
  Clock::time_point probe_at{};            // see probes.cc
  std::chrono::nanoseconds probe_pause{};  // 0: something has come since the last look

  // See stranded.cc.
  struct Stranded {
    WriteOperation* write = nullptr;
    Clock::time_point ask_at{};
    std::string reason{};
  };
  std::deque<Stranded> stranded;
  bool is_asking = false;          // about the first of them
  std::optional<Header> question;  // of the peer, not yet answered
  enum class Rail : uint8_t { InUse, Lost, Told };
  std::vector<Rail> rails;  // of rail_addresses; empty: all are in use
  bool has_rail(size_t rail) const { return rail >= rails.size() || rails[rail] == Rail::InUse; }

  explicit Link(const Handshake& start) : handshake(start) {}
  bool is_connected() const { return is_confirmed; }
  bool has_left() const { return goodbye_count.has_value() && arrived + (is_cut ? awaited : 0) >= *goodbye_count; }
};

}  // namespace ccom::ofi
