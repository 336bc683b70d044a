// SPDX-License-Identifier: Apache-2.0
#include "messages/peer_protocol.h"

#include <cstring>

namespace ccom {

std::shared_ptr<Message> PeerProtocol::sending() const {
  for (const PendingHeader& pending : pending_headers_) {
    if (pending.message != nullptr) return pending.message;
  }
  if (!announced_.empty()) return announced_.begin()->second;
  for (const auto& posted : all_posted_) {
    if (posted->message != nullptr && posted->kind != Posted::Kind::PayloadReceive) return posted->message;
  }
  return nullptr;
}

Posted& PeerProtocol::take_posted(Posted::Kind kind, std::shared_ptr<Message> message) {
  if (free_posted_.empty()) {
    all_posted_.push_back(std::make_unique<Posted>());
    free_posted_.push_back(all_posted_.back().get());
  }
  Posted& posted = *free_posted_.back();
  free_posted_.pop_back();
  posted = {kind, peer_, std::move(message), nullptr};
  return posted;
}

// ---- Sending --------------------------------------------------------------------------------------------------------

Status PeerProtocol::send(std::shared_ptr<Message> message) {
  pending_headers_.push_back({HeaderKind::RequestToSend, std::move(message)});
  return send_queued();
}

Status PeerProtocol::receive(const std::shared_ptr<Message>& message, uint64_t id) {
  Posted& posted = take_posted(Posted::Kind::PayloadReceive, message);
  const MessageRequest& request = message->request;
  CCOM_TRY(route_.payload->post_receive(
      {payload_envelope(id, request.tag), request.bytes, request.data, nullptr, posted.token(), true}));
  pending_headers_.push_back({HeaderKind::ClearToSend, nullptr, id});
  return send_queued();
}

Status PeerProtocol::send_queued() {
  while (!pending_headers_.empty() && posted_headers_ < kMaxPostedHeaders && !has_left_) {
    const PendingHeader pending = std::move(pending_headers_.front());
    pending_headers_.pop_front();
    CCOM_TRY(send_header(pending));
  }
  return {};
}

Status PeerProtocol::send_header(const PendingHeader& pending) {
  if (free_headers_.empty()) {
    all_headers_.push_back(std::make_unique<MessageHeader>());
    free_headers_.push_back(all_headers_.back().get());
  }
  MessageHeader& header = *free_headers_.back();
  free_headers_.pop_back();
  header.kind = pending.kind;
  header.call_type = 0;
  header.acknowledged = taken_;
  header.id = pending.id;
  if (pending.kind != HeaderKind::RequestToSend) return post(header, nullptr);
  const MessageRequest& request = pending.message->request;
  header.tag = request.tag;
  header.call_type = request.call_type;
  header.bytes = request.bytes;
  bytes_sent_ += request.bytes;
  if (request.bytes <= kInlineBytes && eager_sent_ - eager_taken_ < kEagerCredits) {
    header.kind = HeaderKind::Eager;
    ++eager_sent_;
    if (request.bytes > 0) std::memcpy(header.payload.data(), request.data, request.bytes);
    return post(header, pending.message);
  }
  header.id = ++last_id_;
  announced_.emplace(header.id, pending.message);
  return post(header, nullptr);
}

Status PeerProtocol::post(MessageHeader& header, std::shared_ptr<Message> message) {
  Posted& posted = take_posted(Posted::Kind::HeaderSend, std::move(message));
  posted.header = &header;
  ++posted_headers_;
  return route_.headers->post_send({kHeaderEnvelope, std::as_bytes(std::span(&header, 1)), posted.token()});
}

Status PeerProtocol::accept_clear_to_send(uint64_t id) {
  const auto found = announced_.find(id);
  if (found == announced_.end()) return protocol_error("cleared a message that was not announced to it");
  Posted& posted = take_posted(Posted::Kind::PayloadSend, std::move(found->second));
  announced_.erase(found);
  const MessageRequest& request = posted.message->request;
  return route_.payload->post_send({payload_envelope(id, request.tag), {request.data, request.bytes}, posted.token()});
}

// ---- Receiving ------------------------------------------------------------------------------------------------------

Status PeerProtocol::receive_header() {
  if (incoming_header_ == nullptr) incoming_header_ = std::make_unique<MessageHeader>();
  incoming_ = {Posted::Kind::HeaderReceive, peer_, nullptr, incoming_header_.get()};
  return route_.headers->post_receive({kHeaderEnvelope, sizeof(MessageHeader),
                                       reinterpret_cast<std::byte*>(incoming_header_.get()), nullptr, incoming_.token(),
                                       true});
}

Status PeerProtocol::accept_header() {
  const MessageHeader& received = header();
  if (eager_sent_ - received.acknowledged > kEagerCredits)
    return protocol_error("acknowledged more eager messages than were sent to it");
  // Monotonic, since headers arrive in order.
  eager_taken_ = received.acknowledged;
  if (received.call_type > 256 ||
      (received.call_type > 0 && size_of(static_cast<DataType>(received.call_type - 1)) == 0))
    return protocol_error("sent data of an unknown type");
  switch (received.kind) {
    case HeaderKind::Eager:
      if (received.bytes > kInlineBytes) return protocol_error("sent an eager message that exceeds a header");
      if (++arrived_ - taken_ > kEagerCredits) return protocol_error("exceeded its eager credits");
      return {};
    case HeaderKind::RequestToSend: return {};
    case HeaderKind::ClearToSend: return accept_clear_to_send(received.id);
  }
  return protocol_error("sent a header of unknown kind");
}

std::shared_ptr<Message> PeerProtocol::finish(Posted& posted) {
  std::shared_ptr<Message> message = std::move(posted.message);
  if (posted.kind == Posted::Kind::HeaderReceive) return nullptr;
  if (posted.kind == Posted::Kind::HeaderSend) {
    --posted_headers_;
    free_headers_.push_back(posted.header);
  }
  free_posted_.push_back(&posted);
  return message;
}

Status PeerProtocol::protocol_error(const char* what) const {
  return error(Code::TransportError,
               "protocol error: rank %d %s; it runs another version of ccom, or this is a bug in ccom", peer_, what)
      .with_peers({peer_});
}

}  // namespace ccom
