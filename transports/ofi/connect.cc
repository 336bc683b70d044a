// SPDX-License-Identifier: Apache-2.0
//
// Connecting: buffers are posted first, then all peers are greeted; see base/handshake.h. A greeting that the
// provider could not deliver (the peer is not up yet) is sent again.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "base/handshake.h"
#include "base/text.h"
#include "transports/ofi/addresses.h"
#include "transports/ofi/buffers.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

// Polling interval during the handshake, so that retries are on time.
constexpr auto kConnectSlice = std::chrono::milliseconds(5);

// A slot is named by its index in an immediate; and sizes divide by what fits into one.
bool are_usable(const SlotTerms& slots) {
  if (slots.rails == 0) return true;
  return slots.rails <= kMaxRails && slots.window > 0 && slots.slots > 0 && slots.slots <= 1U << kIndexBits &&
         slots.slot_bytes > 0 && slots.slot_bytes % 128 == 0;
}

}  // namespace

Status OfiTransport::connect(std::span<const Peer> peers, const WaitLimit& limit) {
  if (std::exchange(is_connecting_, true)) return error(Code::InvalidUsage, "connect: called twice");
  CCOM_TRY(check_peers(peers));
  CCOM_TRY(plan_terms(peers));
  plan_slots(peers);
  for (const Peer& peer : peers) CCOM_TRY(add_link(peer));
  CCOM_TRY(allocate_buffers());
  for (const auto& link : links_) {
    if (!link->handshake.is_our_turn()) continue;
    prepare(link->greeting, greeting_of(*link));
    link->greeting_due = true;
  }
  const auto connected = [](const auto& link) { return link->is_connected(); };
  while (!std::ranges::all_of(links_, connected)) {
    if (limit.is_reached()) return name_missing();
    CCOM_TRY(greet_everybody());
    CCOM_TRY(advance());
    wait(std::min<std::chrono::nanoseconds>(kConnectSlice, limit.next_look().left()));
  }
  is_connected_ = true;
  return Status::ok();
}

Status OfiTransport::check_peers(std::span<const Peer> peers) const {
  std::vector<Rank> ranks;
  for (const Peer& peer : peers) {
    if (peer.rank < 0 || peer.rank == config_.rank || peer.channels < 1 || peer.channels > kMaxChannels) {
      return error(Code::InvalidArgument, "connect rank %d: invalid peer %d with %d channels", config_.rank, peer.rank,
                   peer.channels);
    }
    ranks.push_back(peer.rank);
  }
  std::ranges::sort(ranks);
  if (const auto twin = std::ranges::adjacent_find(ranks); twin != ranks.end()) {
    return error(Code::InvalidArgument, "connect rank %d: peer %d is listed twice", config_.rank, *twin);
  }
  return Status::ok();
}

// As many credits as fit into the provider's queues.
Status OfiTransport::plan_terms(std::span<const Peer> peers) {
  if (peers.empty()) return Status::ok();
  const Limits limits = endpoint_->limits();
  buffer_bytes_ = std::min(kMaxMessageBytes, limits.message_bytes) / 16 * 16;
  if (buffer_bytes_ < kMinMessageBytes) {
    return error(Code::NotSupported, "libfabric provider %s: messages of %zu bytes are too short",
                 config_.provider.c_str(), limits.message_bytes);
  }
  size_t channels = 0;
  for (const Peer& peer : peers) channels += static_cast<size_t>(peer.channels);
  const size_t queue = std::min(limits.sends, limits.receives);
  const size_t fixed = channels * kGrantBuffers + peers.size() * kHandshakeBuffers;
  const size_t most = fragments_under_way(rails_->count());
  const size_t credits = queue > fixed ? std::min(most, (queue - fixed) / channels) : 0;
  if (credits == 0) {
    return error(Code::NotSupported, "libfabric provider %s: queues of %zu operations are too short for %zu peers",
                 config_.provider.c_str(), queue, peers.size());
  }
  terms_.credits = static_cast<uint32_t>(credits);
  terms_.fragment_bytes = static_cast<uint32_t>(buffer_bytes_ - sizeof(Header));
  return Status::ok();
}

Status OfiTransport::add_link(const Peer& peer) {
  const std::vector<std::string> addresses = split_addresses(peer.address);
  const auto blame = [&peer](Status&& status) {
    return std::move(status).in("connect to rank " + std::to_string(peer.rank)).with_peers({peer.rank});
  };
  auto address = endpoint_->insert(addresses.empty() ? std::string() : addresses.front());
  if (!address) return blame(std::move(address).error());
  auto rails = rails_->insert({addresses.begin() + 1, addresses.end()});
  if (!rails) return blame(std::move(rails).error());
  const HandshakeIdentity self{HandshakeProtocol::Ofi, config_.key, config_.communicator, config_.rank};
  const bool connects = config_.rank > peer.rank;
  auto link = std::make_unique<Link>(connects ? Handshake::connector(self, peer.rank) : Handshake::acceptor(self));
  link->rank = peer.rank;
  link->address = *address;
  link->rail_addresses = *std::move(rails);
  for (int i = 0; i < peer.channels; ++i) {
    const auto index = static_cast<uint8_t>(i);
    link->channels.push_back(std::make_unique<OfiChannel>(board_, *link, peer.rank, index, terms_.credits));
  }
  by_rank_.emplace(peer.rank, link.get());
  links_.push_back(std::move(link));
  return Status::ok();
}

Status OfiTransport::greet_everybody() {
  for (const auto& link : links_) {
    if (Clock::now() >= link->greet_at) CCOM_TRY(greet(*link));
  }
  return Status::ok();
}

// What is due; what failed is posted again as it is.
Status OfiTransport::greet(Link& link) {
  if (link.greeting_due && !link.greeting.is_busy) {
    link.greeting_due = false;
    CCOM_TRY(post(link.greeting));
  }
  if (link.confirm_due && !link.confirm.is_busy) {
    link.confirm_due = false;
    CCOM_TRY(post(link.confirm));
  }
  return Status::ok();
}

void OfiTransport::prepare(SendOperation& operation, const HandshakeMessage& message) {
  std::memcpy(operation.data, &message, sizeof(message));
  operation.size_bytes = sizeof(message);
  operation.kind = Kind::Handshake;
}

// Our Hello or Answer.
HandshakeMessage OfiTransport::greeting_of(Link& link) {
  LinkTerms mine = terms_;
  mine.channels = static_cast<uint32_t>(link.channels.size());
  mine.checksummed = config_.checksum ? 1 : 0;
  mine.slots = link.slots;
  return link.handshake.next(mine);
}

Status OfiTransport::on_handshake(Link& link, const HandshakeMessage& message) {
  if (!link.handshake.receive(message)) {
    const bool is_repeated = std::memcmp(&message, &link.heard, sizeof(message)) == 0;
    if (!is_repeated) ++dropped_;
    return Status::ok();
  }
  link.heard = message;
  if (message.step == HandshakeStep::Confirm) {
    agree(link);
    link.is_confirmed = true;
    return Status::ok();
  }
  link.peer_terms = message.terms_as<LinkTerms>();
  Status compared = compare_terms(link);
  if (message.step == HandshakeStep::Hello) {
    link.disagreement = std::move(compared);
    prepare(link.greeting, greeting_of(link));
    link.greeting_due = true;
    derive_sessions(link);
    return greet(link);
  }
  CCOM_TRY(std::move(compared));
  derive_sessions(link);
  agree(link);
  prepare(link.confirm, link.handshake.next());
  link.confirm_due = true;
  return greet(link);
}

// A connector is done when its Confirm has gone.
Status OfiTransport::on_handshake_sent(const SendOperation& operation) {
  Link& link = *operation.link;
  if (&operation == &link.confirm) link.is_confirmed = true;
  return link.disagreement;
}

Status OfiTransport::compare_terms(const Link& link) const {
  const LinkTerms& theirs = link.peer_terms;
  if (theirs.channels != link.channels.size()) {
    return error(Code::ConfigError, "rank %d uses %u channels to rank %d, which expects %zu", link.rank,
                 theirs.channels, config_.rank, link.channels.size())
        .with_peers({link.rank});
  }
  if (theirs.checksummed != (config_.checksum ? 1u : 0u)) {
    return error(Code::ConfigError, "CCOM_CRC: %d here, %u at rank %d", config_.checksum ? 1 : 0, theirs.checksummed,
                 link.rank)
        .with_peers({link.rank})
        .with_cure("set the same CCOM_* variables and arguments on every rank");
  }
  if (theirs.credits < 1 || theirs.credits > kMaxCredits || theirs.fragment_bytes % 16 != 0 ||
      theirs.fragment_bytes < kMinMessageBytes / 2 || !are_usable(theirs.slots)) {
    return error(Code::TransportError,
                 "rank %d offers invalid terms: %u credits of %u bytes, %u slots of %u bytes, %u rails, a window of %u",
                 link.rank, theirs.credits, theirs.fragment_bytes, theirs.slots.slots, theirs.slots.slot_bytes,
                 theirs.slots.rails, theirs.slots.window)
        .with_peers({link.rank});
  }
  return Status::ok();
}

// Writes are used if both sides support them: sizes within both sides' slots, and at most the peer's window.
void OfiTransport::agree(Link& link) {
  const LinkTerms& theirs = link.peer_terms;
  const uint32_t fragment_bytes = std::min(terms_.fragment_bytes, theirs.fragment_bytes);
  SlotTerms slots = theirs.slots;
  const bool both = link.slots.rails > 0 && slots.rails > 0 && slots.slots > 0 && !link.rail_addresses.empty();
  if (!both) slots = {};
  link.rail_addresses.resize(std::min<size_t>(link.rail_addresses.size(), slots.rails));
  const uint64_t write_bytes = std::min(link.slots.slot_bytes, slots.slot_bytes);
  for (const auto& channel : link.channels) {
    channel->free_writes.resize(std::min<size_t>(channel->free_writes.size(), slots.window));
    channel->agree(theirs.credits, fragment_bytes, slots, write_bytes);
    slots.address += uint64_t{slots.slots} * slots.slot_bytes;
    ++slots.first_ticket;
  }
}

void OfiTransport::derive_sessions(Link& link) {
  const Secret session = link.handshake.session();
  const auto number = [&session](const char* direction) {
    return read_as<uint64_t>(std::as_bytes(session.derive(direction).bytes()));
  };
  const uint64_t up = number("connector to acceptor"), down = number("acceptor to connector");
  const bool connects = config_.rank > link.rank;
  link.session_out = connects ? up : down;
  link.session_in = connects ? down : up;
}

Status OfiTransport::name_missing() const {
  std::string reasons;
  std::vector<int> missing;
  for (const auto& link : links_) {
    if (link->is_connected()) continue;
    missing.push_back(link->rank);
    if (link->last_error != 0 && reasons.empty()) {
      reasons = std::string("; rank ") + std::to_string(link->rank) + ": " + fi_strerror(link->last_error);
    }
  }
  if (dropped_ > 0) reasons += "; " + std::to_string(dropped_) + " messages from outside this job were dropped";
  std::ranges::sort(missing);
  return error(Code::Timeout, "connect rank %d over libfabric (%s): no answer from %s%s", config_.rank,
               config_.provider.c_str(), name_ranks(missing).c_str(), reasons.c_str())
      .with_peers(std::move(missing));
}

}  // namespace ccom::ofi
