// SPDX-License-Identifier: Apache-2.0
#include "messages/relay.h"

#include <algorithm>
#include <cstring>

#include "messages/relay_channel.h"

namespace ccom {

Relay::Relay(Transport& under, RelayConfig config) : under_(under), config_(std::move(config)) {}
Relay::~Relay() = default;

Result<std::unique_ptr<Relay>> Relay::create(Transport& under, RelayConfig config) {
  std::unique_ptr<Relay> relay(new Relay(under, std::move(config)));
  const RelayConfig& its = relay->config_;
  relay->has_left_.resize(static_cast<size_t>(its.nranks));
  for (const Rank neighbour : its.neighbours) {
    for (int lane = 0; lane < its.lanes; ++lane) {
      CCOM_TRY_ASSIGN(Channel* const channel, under.channel(neighbour, MessageRoutes::kChannels + lane));
      relay->lanes_[{neighbour, lane}] = channel;
      relay->intakes_.push_back(std::make_unique<Intake>(neighbour, *channel));
      CCOM_TRY(relay->read(*relay->intakes_.back()));
    }
  }
  for (Rank peer = 0; peer < its.nranks; ++peer) {
    for (int index = 0; index < MessageRoutes::kChannels; ++index)
      relay->channels_.push_back(std::make_unique<FarChannel>(*relay, peer, static_cast<uint32_t>(index)));
  }
  return relay;
}

// On which a piece for this rank comes.
Relay::FarChannel& Relay::far_channel(const RelayRecord& record) const {
  return *channels_[static_cast<size_t>(record.source * MessageRoutes::kChannels) + record.index];
}

Result<Channel*> Relay::channel(Rank peer, int index) {
  if (peer < 0 || peer >= config_.nranks || index < 0 || index >= MessageRoutes::kChannels)
    return error(Code::InvalidArgument, "relay: no channel %d to rank %d", index, peer);
  return channels_[static_cast<size_t>(peer * MessageRoutes::kChannels + index)].get();
}

// The channel on which what is for `to` leaves.
Result<Channel*> Relay::lane_to(Rank to) const {
  const RelayConfig::Next next = config_.next(to);
  const auto lane = lanes_.find({next.rank, next.lane});
  if (lane == lanes_.end()) return protocol_error(to, "cannot be reached from here, but was sent something");
  if (!has_left_[static_cast<size_t>(next.rank)]) return lane->second;
  return error(
             ErrorKey::MessageWithoutPeer,
             "rank %d: messages to rank %d will never arrive: rank %d, which forwards them, has left the communicator",
             config_.rank, to, next.rank)
      .with_peers({next.rank})
      .with_cure("destroy the communicator on every rank only after all have finalized it");
}

uint64_t Relay::memory_bytes() const {
  uint64_t bytes = under_.memory_bytes() + pieces_.size() * sizeof(Piece);
  for (const auto& intake : intakes_) {
    for (const Slot& slot : intake->slots)
      bytes += sizeof(Slot) + (slot.body != nullptr ? config_.most_piece_bytes : 0);
  }
  return bytes;
}

// ---- Progress -------------------------------------------------------------------------------------------------------

Status Relay::progress(Events& events) {
  CCOM_TRY(under_.progress(under_events_));
  if (under_events_.mismatch) events.mismatch = under_events_.mismatch;
  for (const Token token : under_events_.completed) {
    if (!Operation::is(token)) {
      events.completed.push_back(token);
    } else {
      CCOM_TRY(on_completed(Operation::of(token), events));
    }
  }
  for (const Token token : under_events_.ended) {
    if (!Operation::is(token)) {
      events.ended.push_back(token);
    } else {
      CCOM_TRY(on_ended(Operation::of(token)));
    }
  }
  under_events_.completed.clear();
  under_events_.ended.clear();
  events.completed.insert(events.completed.end(), due_.begin(), due_.end());
  due_.clear();
  return {};
}

Relay::Piece& Relay::take_piece() {
  if (free_pieces_.empty()) {
    pieces_.push_back(std::make_unique<Piece>());
    free_pieces_.push_back(pieces_.back().get());
  }
  Piece& piece = *free_pieces_.back();
  free_pieces_.pop_back();
  return piece;
}

Status Relay::on_completed(Operation& operation, Events& events) {
  switch (operation.kind) {
    case Operation::Kind::Record: return on_record(*operation.slot, events);
    case Operation::Kind::Body: {
      Slot& slot = *operation.slot;
      if (slot.record.destination != config_.rank) {
        CCOM_TRY(forward(slot));
      } else {
        CCOM_TRY(far_channel(slot.record).arrived(slot.record.body_bytes, events));
        slot.is_free = true;
      }
      return read(*slot.intake);
    }
    case Operation::Kind::Forward: {
      Slot& slot = *operation.slot;
      if (--slot.sends_left > 0) return {};
      slot.is_free = true;
      return read(*slot.intake);
    }
    case Operation::Kind::Own: {
      Piece& piece = *operation.piece;
      if (--piece.sends_left > 0) return {};
      free_pieces_.push_back(&piece);
      return piece.channel->sent(piece.number, events);
    }
  }
  return {};
}

// Nothing comes from that rank any more. What should still go there is an error when it is sent.
Status Relay::on_ended(Operation& operation) {
  has_left_[static_cast<size_t>(operation.slot->intake->from)] = true;
  return {};
}

// ---- What comes from neighbours -------------------------------------------------------------------------------------

// Posts the receive of the next record, if there is a buffer for it and nothing else is being received.
Status Relay::read(Intake& intake) {
  if (intake.is_reading) return {};
  for (Slot& slot : intake.slots) {
    if (!slot.is_free) continue;
    slot.intake = &intake;
    slot.is_free = false;
    intake.is_reading = true;
    return intake.channel.post_receive({kRecordEnvelope, sizeof(RelayRecord),
                                        reinterpret_cast<std::byte*>(&slot.record), nullptr,
                                        slot.record_operation.token(), true});
  }
  return {};
}

Status Relay::on_record(Slot& slot, Events& events) {
  const RelayRecord& record = slot.record;
  slot.intake->is_reading = false;
  const auto is_rank = [this](int32_t rank) { return rank >= 0 && rank < config_.nranks; };
  if (!is_rank(record.source) || !is_rank(record.destination) || record.source == config_.rank ||
      record.index >= static_cast<uint32_t>(MessageRoutes::kChannels) || record.body_bytes > config_.most_piece_bytes ||
      (record.body_bytes == 0 && record.message_bytes > RelayRecord::kContentBytes)) {
    return protocol_error(slot.intake->from, "sent something to be forwarded that cannot be right");
  }
  if (record.destination == config_.rank) return accept(slot, events);
  if (record.body_bytes == 0) {
    CCOM_TRY(forward(slot));
    return read(*slot.intake);
  }
  if (slot.body == nullptr) slot.body = std::make_unique<std::byte[]>(config_.most_piece_bytes);
  return slot.intake->channel.post_receive(
      {kBodyEnvelope, record.body_bytes, slot.body.get(), nullptr, slot.body_operation.token(), false});
}

Status Relay::forward(Slot& slot) {
  CCOM_TRY_ASSIGN(Channel* const out, lane_to(slot.record.destination));
  const bool has_body = slot.record.body_bytes > 0;
  slot.sends_left = has_body ? 2 : 1;
  const Token token = slot.forward_operation.token();
  CCOM_TRY(out->post_send({kRecordEnvelope, std::as_bytes(std::span(&slot.record, 1)), token}));
  if (!has_body) return {};
  return out->post_send({kBodyEnvelope, {slot.body.get(), slot.record.body_bytes}, token});
}

// For this rank.
Status Relay::accept(Slot& slot, Events& events) {
  const RelayRecord& record = slot.record;
  FarChannel& channel = far_channel(record);
  if (record.body_bytes == 0) {
    CCOM_TRY(channel.deliver(record, events));
    slot.is_free = true;
    return read(*slot.intake);
  }
  CCOM_TRY_ASSIGN(std::byte* const target, channel.place_of(record, events));
  if (target == nullptr) return {};  // a mismatch, which is final
  return slot.intake->channel.post_receive(
      {kBodyEnvelope, record.body_bytes, target, nullptr, slot.body_operation.token(), false});
}

Status Relay::protocol_error(Rank from, const char* what) const {
  return error(Code::TransportError,
               "protocol error: rank %d %s; it runs another version of ccom, or this is a bug in ccom", from, what)
      .with_peers({from});
}

}  // namespace ccom
