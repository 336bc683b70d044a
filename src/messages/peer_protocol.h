// SPDX-License-Identifier: Apache-2.0
//
// Everything between this rank and one peer: what waits to be said, what was announced, and how much may be said
// without being asked.
//
//   eager message     Eager{payload} ->
//   larger message    Announce{id} ->   <- Clear{id}   payload ->
//
// Headers keep their order, so messages with one tag do. A payload is posted on its own channel when its Clear comes,
// in the order of the Clears, which is the order in which the peer has posted the receives.
//
// A header goes to a peer only if it waits for it: who has received and sent all that concerns it may leave at any
// moment. That is why acknowledgements ride on other headers, and every kEagerCredits-th small message is announced.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "messages/message.h"
#include "messages/routes.h"
#include "messages/wire.h"

namespace ccom {

// What a transport calls by its token.
struct Posted {
  enum class Kind { HeaderSend, HeaderReceive, PayloadSend, PayloadReceive };
  Kind kind{};
  Rank peer = -1;
  std::shared_ptr<Message> message;  // HeaderSend: an eager one, or null
  MessageHeader* header = nullptr;   // of HeaderSend and HeaderReceive
  Token token() const { return reinterpret_cast<Token>(this); }
};

// Belongs to whoever holds the progress lock. An error of any function is final.
class PeerProtocol {
 public:
  PeerProtocol(Rank peer, MessageRoutes::Way way) : peer_(peer), way_(way) {}

  int transport() const { return way_.transport; }
  bool has_left() const { return has_left_; }
  // A message of this rank that is not handed over yet, or null: for texts.
  std::shared_ptr<Message> sending() const;

  Status open() { return receive_header(); }
  // Announces the message, or sends it, when it has its turn.
  Status send(std::shared_ptr<Message> message);
  // Asks the peer for the payload of what it has announced as `id`.
  Status receive(const std::shared_ptr<Message>& message, uint64_t id);
  // The peer's eager message was received.
  void acknowledge() { ++taken_; }

  // What a header that has come says, but for Clear, which is served here. Then the next one may come.
  const MessageHeader& header() const { return *incoming_.header; }
  Status accept_header();
  Status next_header() { return receive_header(); }
  // No header will ever come again.
  void note_end() { has_left_ = true; }

  // To be told of each completion. Returns the message that is complete thereby, if any. Then go_on().
  std::shared_ptr<Message> finish(Posted& posted);
  // Says what there was no room for.
  Status go_on();
  uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct PendingHeader {  // that waits to be said
    HeaderKind kind;
    std::shared_ptr<Message> message;
    uint64_t id = 0;
  };
  static constexpr size_t kMostHeaders = 32;  // with the transport at a time

  Status receive_header();
  Status send_header(const PendingHeader& header);
  Status post(MessageHeader& header, std::shared_ptr<Message> message);
  Status serve_clear(uint64_t id);
  Status broken(const char* what) const;
  Posted& take_posted(Posted::Kind kind, std::shared_ptr<Message> message);

  const Rank peer_;
  const MessageRoutes::Way way_;
  bool has_left_ = false;

  std::deque<PendingHeader> words_;
  size_t headers_under_way_ = 0;
  uint64_t last_id_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Message>> announced_;  // by id
  uint32_t eager_sent_ = 0, eager_taken_ = 0;                         // there, as far as we know
  uint32_t arrived_ = 0, taken_ = 0;                                  // eager messages of the peer, here
  uint64_t bytes_sent_ = 0;

  Posted incoming_;
  std::unique_ptr<MessageHeader> incoming_header_;
  std::vector<std::unique_ptr<Posted>> all_posted_;
  std::vector<std::unique_ptr<MessageHeader>> all_headers_;
  std::vector<Posted*> free_posted_;
  std::vector<MessageHeader*> free_headers_;
};

}  // namespace ccom
