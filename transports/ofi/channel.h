// SPDX-License-Identifier: Apache-2.0
//
// One ordered pipe over messages that may arrive in any order: numbering, cutting into fragments, placing, credits.
// Knows nothing of libfabric; the transport moves what it cuts and hands it what arrives.
//
// Sender:   sent <= allowed = (what the receiver has announced as consumed) + credits.
// Receiver: a fragment of a message that no receive is posted for stays in its buffer, at most `credits` of them.
//           consumed counts buffers that are posted again; it is announced on every fragment that goes the other way,
//           and by a Grant of its own when half of the credits have gathered. So a channel that nobody receives from
//           holds `credits` buffers of this rank and no more, and no other channel waits for them.
#pragma once

#include <deque>
#include <vector>

#include "transports/ofi/receive_pool.h"
#include "transports/ofi/wire.h"
#include "transports/transport.h"

namespace ccom::ofi {

struct Link;
class OfiChannel;

// A message of ours under way, or a place for one.
struct SendOperation : Operation {
  Link* link = nullptr;
  OfiChannel* channel = nullptr;  // Data and Grant
  Kind kind{};
  uint64_t message = 0;  // Data: which one it belongs to
  bool is_busy = false;  // in the outbox or with the provider
};

// What channels tell the transport. Owned by it.
struct Board {
  Status failed;  // the first error: final
  bool stopped = false;
  std::vector<OfiChannel*> ready;  // have something to do
  std::vector<Token> completed;    // not yet reported
  std::vector<Token> ended;        // likewise
  std::optional<Mismatch> mismatch;
};

class OfiChannel final : public Channel {
 public:
  OfiChannel(Board& board, Link& link, Rank peer, uint8_t index, uint64_t credits);

  Status post_send(const Send& send) override;
  Status post_receive(const Receive& receive) override;

  // The terms of the handshake. Before them nothing may be posted; but the peer, which may know them earlier, may send.
  void agree(uint64_t peer_credits, uint64_t fragment_bytes);
  // Puts the channel on the board's list, once.
  void schedule();
  void unschedule() { is_scheduled_ = false; }

  // Sending.
  bool has_fragment() const { return !sends_.empty() && sent_ < allowed_; }
  bool has_sends() const { return !sends_.empty(); }
  // Fills in the header's share of the next fragment and returns its payload.
  ConstBytes cut(Header& header);
  // A fragment of that message is out of our hands. A send completes with its last one, not when it is copied: whoever
  // stops calling progress() then leaves nothing behind that others wait for.
  void fragment_is_out(uint64_t message);
  // The peer has announced what it consumed. An error if it is more than was sent.
  Status take_credit(uint64_t consumed);

  // Receiving.
  bool has_receives() const { return !receives_.empty(); }
  // The peer has left, and nothing of it is under way. False if that is an error.
  bool end_receives();
  // A fragment has come: delivers and releases it, or keeps it until its receive is posted.
  Status accept(ReceiveOperation& operation, ReceivePool& pool);
  // Delivers what was kept, as far as receives were posted meanwhile.
  Status accept_kept(ReceivePool& pool);
  void return_credit();
  bool is_grant_due() const { return consumed_ - announced_ >= grant_step_; }
  uint64_t announce_consumed() { return announced_ = consumed_; }

  // Forgets all that is posted and kept; nothing of it completes. Buffers that were kept stay with the caller's pool.
  void drop_all();

  Link& link() { return link_; }
  uint8_t index() const { return index_; }

  std::vector<SendOperation*> free_slots;  // for Data
  SendOperation grant;

 private:
  struct Outgoing {
    Token token = 0;
    uint64_t fragments_left = 0;  // not yet out of our hands
  };
  struct Incoming {
    Receive receive;
    uint64_t fragments_left = 0;  // not yet here
    std::optional<Mismatch> mismatch{};
  };
  Status deliver(const Header& header, ConstBytes payload);
  Status retire_receives();
  Status check_fragment(const Header& header, const Incoming& incoming) const;
  Status violation(const char* what) const;

  Board& board_;
  Link& link_;
  const Rank peer_;
  const uint8_t index_;
  const uint64_t credits_;     // what the peer may have in our buffers
  const uint64_t grant_step_;  // how many of them make a Grant
  bool is_scheduled_ = false;
  uint64_t peer_credits_ = 0;  // what we may have in the peer's
  uint64_t fragment_bytes_ = 0;

  std::deque<Send> sends_;
  uint64_t send_number_ = 0;         // of the front
  size_t send_offset_ = 0;           // of the front: cut so far
  std::deque<Outgoing> outgoing_;    // those that are cut, wholly or in part, and not complete
  uint64_t outgoing_number_ = 0;     // of the front
  uint64_t sent_ = 0, allowed_ = 0;  // fragments, ever

  std::deque<Incoming> receives_;
  uint64_t receive_number_ = 0;  // of the front
  std::vector<ReceiveOperation*> kept_;
  uint64_t consumed_ = 0, announced_ = 0;  // fragments, ever
};

}  // namespace ccom::ofi
