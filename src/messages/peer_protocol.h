// SPDX-License-Identifier: Apache-2.0
//
// The point-to-point protocol between this rank and one peer: queued headers, announced messages, eager credits.
//
//   eager message        Eager{payload} ->
//   rendezvous message   RequestToSend{id} ->   <- ClearToSend{id}   payload ->
//
// Headers are delivered in order, which keeps messages with equal tags in order. A payload is posted on the payload
// channel when its ClearToSend arrives; that is the order in which the peer has posted the receives.
//
// A header is sent only to a peer that waits for it, because a rank whose own messages are complete may leave at any
// time. Hence acknowledgements are piggybacked on other headers, and every kEagerCredits-th small message uses
// rendezvous.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "messages/message.h"
#include "messages/routes.h"
#include "messages/wire.h"

namespace ccom {

// Context of a posted operation; its address is the transport's token.
struct Posted {
  enum class Kind { HeaderSend, HeaderReceive, PayloadSend, PayloadReceive };
  Kind kind{};
  Rank peer = -1;
  std::shared_ptr<Message> message;  // HeaderSend: an eager one, or null
  MessageHeader* header = nullptr;   // of HeaderSend and HeaderReceive
  Token token() const { return reinterpret_cast<Token>(this); }
};

// Used under the progress lock. Any error is final.
class PeerProtocol {
 public:
  PeerProtocol(Rank peer, MessageRoutes::Route route) : peer_(peer), route_(route) {}

  int transport() const { return route_.transport; }
  bool has_left() const { return has_left_; }
  // A message of this rank that is not yet sent, or null; for error texts.
  std::shared_ptr<Message> sending() const;

  Status open() { return receive_header(); }
  // Queues the message's header (eager, or a request to send).
  Status send(std::shared_ptr<Message> message);
  // Posts the receive of the payload that the peer has announced as `id`, and clears it to send.
  Status receive(const std::shared_ptr<Message>& message, uint64_t id);
  // The peer's eager message was consumed: returns its credit.
  void acknowledge() { ++taken_; }

  // The received header. accept_header() validates it and handles ClearToSend; next_header() allows the next to arrive.
  const MessageHeader& header() const { return *incoming_.header; }
  Status accept_header();
  Status next_header() { return receive_header(); }
  // The peer has closed its header channel.
  void mark_closed() { has_left_ = true; }

  // To be called for each completion. Returns the message that it completes, if any. Follow with send_queued().
  std::shared_ptr<Message> finish(Posted& posted);
  // Sends queued headers while the transport has room.
  Status send_queued();
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct PendingHeader {  // queued until the transport has room
    HeaderKind kind;
    std::shared_ptr<Message> message;
    uint64_t id = 0;
  };
  static constexpr size_t kMaxPostedHeaders = 32;  // posted at a time

  Status receive_header();
  Status send_header(const PendingHeader& header);
  Status post(MessageHeader& header, std::shared_ptr<Message> message);
  Status accept_clear_to_send(uint64_t id);
  Status protocol_error(const char* what) const;
  Posted& take_posted(Posted::Kind kind, std::shared_ptr<Message> message);

  const Rank peer_;
  const MessageRoutes::Route route_;
  bool has_left_ = false;

  std::deque<PendingHeader> pending_headers_;
  size_t posted_headers_ = 0;
  uint64_t last_id_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Message>> announced_;  // by id
  uint32_t eager_sent_ = 0, eager_taken_ = 0;                         // received by the peer, as last acknowledged
  uint32_t arrived_ = 0, taken_ = 0;                                  // eager messages from the peer
  uint64_t bytes_sent_ = 0;

  Posted incoming_;
  std::unique_ptr<MessageHeader> incoming_header_;
  std::vector<std::unique_ptr<Posted>> all_posted_;
  std::vector<std::unique_ptr<MessageHeader>> all_headers_;
  std::vector<Posted*> free_posted_;
  std::vector<MessageHeader*> free_headers_;
};

}  // namespace ccom
