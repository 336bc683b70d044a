// SPDX-License-Identifier: Apache-2.0
#include "messages/relay_channel.h"

#include <algorithm>
#include <cstring>

namespace ccom {

// ---- Sending --------------------------------------------------------------------------------------------------------

Status Relay::FarChannel::post_send(const Send& send) {
  const size_t bytes = send.payload.size();
  const size_t piece = bytes <= RelayRecord::kContentBytes ? 0 : relay_.config_.piece_bytes(peer_, bytes);
  sends_.push_back({send, std::min(piece, relay_.config_.most_piece_bytes)});
  return send_pieces();
}

Status Relay::FarChannel::send_pieces() {
  while (posted_ < sends_.size() && on_the_way_ < kMostOnTheWay) {
    Sending& sending = sends_[posted_];
    CCOM_TRY(send_piece(sending, first_ + posted_));
    if (sending.is_posted) ++posted_;
  }
  return {};
}

Status Relay::FarChannel::send_piece(Sending& sending, uint64_t number) {
  CCOM_TRY_ASSIGN(Channel* const out, relay_.lane_to(peer_));
  Piece& piece = relay_.take_piece();
  const ConstBytes payload = sending.send.payload;
  const bool is_whole = payload.size() <= RelayRecord::kContentBytes;
  const size_t body = is_whole ? 0 : std::min(sending.piece_bytes, payload.size() - sending.posted_bytes);
  RelayRecord& record = piece.record;
  record.source = relay_.config_.rank;
  record.destination = peer_;
  record.index = index_;
  record.body_bytes = static_cast<uint32_t>(body);
  record.offset_bytes = sending.posted_bytes;
  record.message_bytes = payload.size();
  record.envelope = sending.send.envelope;
  if (is_whole && !payload.empty()) std::memcpy(record.content.data(), payload.data(), payload.size());
  piece.channel = this;
  piece.number = number;
  piece.sends_left = is_whole ? 1 : 2;
  ++on_the_way_;
  ++sending.on_the_way;
  const size_t offset = sending.posted_bytes;
  sending.posted_bytes += body;
  sending.is_posted = is_whole || sending.posted_bytes == payload.size();
  const Token token = piece.operation.token();
  CCOM_TRY(out->post_send({kRecordEnvelope, std::as_bytes(std::span(&record, 1)), token}));
  return is_whole ? Status::ok() : out->post_send({kBodyEnvelope, payload.subspan(offset, body), token});
}

Status Relay::FarChannel::sent(uint64_t number, Events& events) {
  --on_the_way_;
  Sending& sending = sends_[number - first_];
  if (--sending.on_the_way == 0 && sending.is_posted) events.completed.push_back(sending.send.token);
  while (!sends_.empty() && sends_.front().is_posted && sends_.front().on_the_way == 0) {
    sends_.pop_front();
    ++first_;
    --posted_;
  }
  return send_pieces();
}

// ---- Receiving ------------------------------------------------------------------------------------------------------

bool Relay::FarChannel::fits(const Receive& receive, const RelayRecord& record) {
  return receive.expected == record.envelope && receive.size_bytes == record.message_bytes;
}

void Relay::FarChannel::mismatch(const Receive& receive, const RelayRecord& record, Events& events) const {
  events.mismatch = {peer_, receive.expected, record.envelope, receive.size_bytes, record.message_bytes};
}

Status Relay::FarChannel::post_receive(const Receive& receive) {
  if (receive.sink != nullptr) return error(Code::InvalidArgument, "relay: sinks are not supported");
  if (early_.empty()) {
    receives_.push_back({receive});
    return {};
  }
  const RelayRecord record = early_.front();
  early_.pop_front();
  if (!fits(receive, record)) return relay_.protocol_error(peer_, "sent another message than is expected of it");
  if (record.message_bytes > 0) std::memcpy(receive.target, record.content.data(), record.message_bytes);
  relay_.due_.push_back(receive.token);
  return {};
}

Status Relay::FarChannel::deliver(const RelayRecord& record, Events& events) {
  if (receives_.empty()) {
    early_.push_back(record);
    return {};
  }
  const Receive receive = receives_.front().receive;
  if (!fits(receive, record)) {
    mismatch(receive, record, events);
    return {};
  }
  if (receives_.front().announced_bytes > 0) return relay_.protocol_error(peer_, "sent a message inside another one");
  if (record.message_bytes > 0) std::memcpy(receive.target, record.content.data(), record.message_bytes);
  receives_.pop_front();
  events.completed.push_back(receive.token);
  return {};
}

Result<std::byte*> Relay::FarChannel::place_of(const RelayRecord& record, Events& events) {
  const auto found = std::ranges::find_if(
      receives_, [](const Receiving& each) { return each.announced_bytes < each.receive.size_bytes; });
  if (found == receives_.end()) return relay_.protocol_error(peer_, "sent a message that nobody has cleared");
  if (!fits(found->receive, record)) {
    mismatch(found->receive, record, events);
    return nullptr;
  }
  if (record.offset_bytes != found->announced_bytes || record.body_bytes > record.message_bytes - record.offset_bytes)
    return relay_.protocol_error(peer_, "sent pieces of a message that do not follow each other");
  found->announced_bytes += record.body_bytes;
  return found->receive.target + record.offset_bytes;
}

Status Relay::FarChannel::arrived(size_t bytes, Events& events) {
  if (receives_.empty()) return relay_.protocol_error(peer_, "sent more than it announced");
  Receiving& first = receives_.front();
  first.arrived_bytes += bytes;
  if (first.arrived_bytes < first.receive.size_bytes) return {};
  events.completed.push_back(first.receive.token);
  receives_.pop_front();
  return {};
}

}  // namespace ccom
