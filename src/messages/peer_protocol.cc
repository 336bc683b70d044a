// SPDX-License-Identifier: Apache-2.0
#include "messages/peer_protocol.h"

#include <cstring>

namespace ccom {

std::shared_ptr<Message> PeerProtocol::sending() const {
  for (const PendingHeader& word : words_) {
    if (word.message != nullptr) return word.message;
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

// ---- Out ------------------------------------------------------------------------------------------------------------

Status PeerProtocol::send(std::shared_ptr<Message> message) {
  words_.push_back({HeaderKind::Announce, std::move(message)});
  return go_on();
}

Status PeerProtocol::receive(const std::shared_ptr<Message>& message, uint64_t id) {
  Posted& posted = take_posted(Posted::Kind::PayloadReceive, message);
  const MessageRequest& asked = message->asked;
  CCOM_TRY(way_.payload->post_receive(
      {payload_envelope(id, asked.tag), asked.bytes, asked.data, nullptr, posted.token(), true}));
  words_.push_back({HeaderKind::Clear, nullptr, id});
  return go_on();
}

Status PeerProtocol::go_on() {
  while (!words_.empty() && headers_under_way_ < kMostHeaders && !has_left_) {
    const PendingHeader word = std::move(words_.front());
    words_.pop_front();
    CCOM_TRY(send_header(word));
  }
  return {};
}

Status PeerProtocol::send_header(const PendingHeader& word) {
  if (free_headers_.empty()) {
    all_headers_.push_back(std::make_unique<MessageHeader>());
    free_headers_.push_back(all_headers_.back().get());
  }
  MessageHeader& header = *free_headers_.back();
  free_headers_.pop_back();
  header.kind = word.kind;
  header.acknowledged = taken_;
  header.id = word.id;
  if (word.kind != HeaderKind::Announce) return post(header, nullptr);
  const MessageRequest& asked = word.message->asked;
  header.tag = asked.tag;
  header.bytes = asked.bytes;
  bytes_sent_ += asked.bytes;
  if (asked.bytes <= kInlineBytes && eager_sent_ - eager_taken_ < kEagerCredits) {
    header.kind = HeaderKind::Eager;
    ++eager_sent_;
    if (asked.bytes > 0) std::memcpy(header.payload.data(), asked.data, asked.bytes);
    return post(header, word.message);
  }
  header.id = ++last_id_;
  announced_.emplace(header.id, word.message);
  return post(header, nullptr);
}

Status PeerProtocol::post(MessageHeader& header, std::shared_ptr<Message> message) {
  Posted& posted = take_posted(Posted::Kind::HeaderSend, std::move(message));
  posted.header = &header;
  ++headers_under_way_;
  return way_.headers->post_send({kHeaderEnvelope, std::as_bytes(std::span(&header, 1)), posted.token()});
}

Status PeerProtocol::serve_clear(uint64_t id) {
  const auto found = announced_.find(id);
  if (found == announced_.end()) return broken("asks for a message that it was not offered");
  Posted& posted = take_posted(Posted::Kind::PayloadSend, std::move(found->second));
  announced_.erase(found);
  const MessageRequest& asked = posted.message->asked;
  return way_.payload->post_send({payload_envelope(id, asked.tag), {asked.data, asked.bytes}, posted.token()});
}

// ---- In -------------------------------------------------------------------------------------------------------------

Status PeerProtocol::receive_header() {
  if (incoming_header_ == nullptr) incoming_header_ = std::make_unique<MessageHeader>();
  incoming_ = {Posted::Kind::HeaderReceive, peer_, nullptr, incoming_header_.get()};
  return way_.headers->post_receive({kHeaderEnvelope, sizeof(MessageHeader),
                                     reinterpret_cast<std::byte*>(incoming_header_.get()), nullptr, incoming_.token(),
                                     true});
}

Status PeerProtocol::accept_header() {
  const MessageHeader& said = header();
  if (eager_sent_ - said.acknowledged > kEagerCredits) return broken("has received more than it was sent");
  // Never backwards: headers keep their order.
  eager_taken_ = said.acknowledged;
  switch (said.kind) {
    case HeaderKind::Eager:
      if (said.bytes > kInlineBytes) return broken("sends more than fits into a header");
      if (++arrived_ - taken_ > kEagerCredits) return broken("sends more than may be kept for it");
      return {};
    case HeaderKind::Announce: return {};
    case HeaderKind::Clear: return serve_clear(said.id);
  }
  return broken("says something unknown");
}

std::shared_ptr<Message> PeerProtocol::finish(Posted& posted) {
  std::shared_ptr<Message> message = std::move(posted.message);
  if (posted.kind == Posted::Kind::HeaderReceive) return nullptr;
  if (posted.kind == Posted::Kind::HeaderSend) {
    --headers_under_way_;
    free_headers_.push_back(posted.header);
  }
  free_posted_.push_back(&posted);
  return message;
}

Status PeerProtocol::broken(const char* what) const {
  return error(Code::TransportError, "rank %d %s: its ccom differs from ours, or has a bug", peer_, what)
      .with_peers({peer_});
}

}  // namespace ccom
