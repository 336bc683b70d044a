// SPDX-License-Identifier: Apache-2.0
//
// Private to the relay: its buffers, and a channel to a rank that is not linked.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "messages/relay.h"

namespace ccom {

// Context of something posted to the transport below. Its address with the lowest bit set is the token, by which it is
// told from what others have posted there.
struct Relay::Operation {
  enum class Kind { Record, Body, Forward, Own };
  Kind kind;
  Slot* slot = nullptr;
  Piece* piece = nullptr;

  Token token() const { return reinterpret_cast<Token>(this) | 1; }
  static bool is(Token token) { return (token & 1) != 0; }
  static Operation& of(Token token) { return *reinterpret_cast<Operation*>(token & ~Token{1}); }
};

// A buffer for a piece.
struct Relay::Slot {
  RelayRecord record;
  std::unique_ptr<std::byte[]> body;  // from the first one on that is forwarded
  bool is_free = true;
  int sends_left = 0;
  Intake* intake = nullptr;
  Operation record_operation{Operation::Kind::Record, this};
  Operation body_operation{Operation::Kind::Body, this};
  Operation forward_operation{Operation::Kind::Forward, this};
};

// A lane on which pieces come from a neighbour.
struct Relay::Intake {
  Intake(Rank neighbour, Channel& its_channel) : from(neighbour), channel(its_channel) {}
  const Rank from;
  Channel& channel;
  bool is_reading = false;  // a record
  std::array<Slot, 2> slots;
};

// A piece that this rank sends, on its way to the next rank.
struct Relay::Piece {
  RelayRecord record;
  int sends_left = 0;
  FarChannel* channel = nullptr;
  uint64_t number = 0;  // of its message on the channel
  Operation operation{Operation::Kind::Own, nullptr, this};
};

class Relay::FarChannel final : public Channel {
 public:
  FarChannel(Relay& relay, Rank peer, uint32_t index) : relay_(relay), peer_(peer), index_(index) {}

  Status post_send(const Send& send) override;
  Status post_receive(const Receive& receive) override;

  // A piece of that message has left.
  Status sent(uint64_t number, Events& events);
  // A whole message has come.
  Status deliver(const RelayRecord& record, Events& events);
  // Where the body that this record announces belongs; null: the receive expects something else, says `events`.
  Result<std::byte*> place_of(const RelayRecord& record, Events& events);
  // So many bytes of a body have come there.
  Status arrived(size_t bytes, Events& events);

 private:
  struct Sending {
    Send send;
    size_t piece_bytes = 0;
    size_t posted_bytes = 0;
    bool is_posted = false;  // all of it
    size_t on_the_way = 0;   // pieces
  };
  struct Receiving {
    Receive receive;
    size_t announced_bytes = 0, arrived_bytes = 0;
  };
  static constexpr size_t kMostOnTheWay = 4;  // pieces; others' pieces get their turn between them

  Status send_pieces();
  Status send_piece(Sending& sending, uint64_t number);
  static bool fits(const Receive& receive, const RelayRecord& record);
  void mismatch(const Receive& receive, const RelayRecord& record, Events& events) const;

  Relay& relay_;
  const Rank peer_;
  const uint32_t index_;
  std::deque<Sending> sends_;
  uint64_t first_ = 0;  // number of the first of them
  size_t posted_ = 0;   // of them, completely
  size_t on_the_way_ = 0;
  std::deque<Receiving> receives_;
  std::deque<RelayRecord> early_;  // came before their receive
};

}  // namespace ccom
