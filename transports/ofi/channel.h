// SPDX-License-Identifier: Apache-2.0
//
// One ordered pipe over fragments that may arrive in any order: numbering, cutting, placing, credits. Knows nothing of
// libfabric; the transport moves what it cuts and hands it what arrives.
//
// A fragment goes one of three ways, and each of a message may go another:
//   Inline  behind its header, into one of the receiver's buffers. Small messages, and where there are no writes.
//   Slot    written into a slot of the receiver's, so that nothing waits for its consent, and lent to the sink there.
//   Target  written to where it belongs, once the receiver has said where that is.
//
// Sender:   sent <= allowed = (what the receiver has announced as consumed) + credits; slots likewise.
// Receiver: a fragment of a message that no receive is posted for stays in its buffer or slot. consumed counts buffers
//           that are posted again; it is announced on every fragment that goes the other way, and by a Grant of its own
//           when half of the credits, or of the slots, have gathered. So a channel that nobody receives from holds
//           `credits` buffers and its slots of this rank and no more, and no other channel waits for them.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "transports/ofi/write_tickets.h"
#include "transports/ofi/rails.h"
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

enum class Way : uint8_t { None, Inline, Slot, Target };

// A fragment to send; its header was filled in.
struct Piece {
  Way way{};
  ConstBytes payload;
  uint64_t address = 0;  // at the peer, unless inline
  std::array<uint64_t, kMaxRails> keys{};
  const Lease* source = nullptr;  // null: the providers need none
};

// A fragment that is here, whole and checked.
struct Arrival {
  Header header;
  ConstBytes payload;
  ReceiveOperation* operation = nullptr;  // the buffer that holds it; null: it was written
  bool is_in_place = false;               // where it belongs
};

// What channels tell the transport. Owned by it.
struct Board {
  Status failed;  // the first error: final
  bool stopped = false;
  std::vector<OfiChannel*> ready;  // have something to do
  std::vector<Token> completed;    // not yet reported
  std::vector<Token> ended;        // likewise
  std::optional<Mismatch> mismatch;
  WriteTickets landings;
};

class OfiChannel final : public Channel {
 public:
  OfiChannel(Board& board, Link& link, Rank peer, uint8_t index, uint64_t credits);

  Status post_send(const Send& send) override;
  Status post_receive(const Receive& receive) override;

  // The terms of the handshake. Before them nothing may be posted; but the peer, which may know them earlier, may send.
  // `theirs` are this channel's slots; writes are at most `write_bytes` long.
  void agree(uint64_t peer_credits, uint64_t fragment_bytes, const SlotTerms& theirs, uint64_t write_bytes);
  // Memory for the peer to write into, `ticket` its landings.
  void offer_slots(Bytes memory, uint32_t slots, uint32_t ticket);
  // Puts the channel on the board's list, once.
  void schedule();
  void unschedule() { is_scheduled_ = false; }

  // Sending.
  bool has_sends() const { return !sends_.empty(); }
  bool has_credit() const { return sent_ < allowed_ && !free_slots.empty(); }
  // How the next fragment goes, if it can go now.
  Way next_way() const;
  // True: the next one may go into the peer's memory, so its message must be registered, see lend_source().
  bool needs_source() const { return !outgoing_is_known() || outgoing_.back().source == nullptr; }
  void lend_source(std::shared_ptr<const Lease> lease);
  ConstBytes front_payload() const { return sends_.front().payload; }
  // Fills in the header's share of the next fragment.
  Piece cut(Header& header, Way way);
  // A fragment of that message, or its header, is out of our hands. A send completes with its last one, not when it is
  // copied: whoever stops calling progress() then leaves nothing behind that others wait for.
  void part_is_out(uint64_t message);
  // The peer has announced what it is done with. An error if it is more than was sent.
  Status take_credit(const Header& header);
  void take_target(const Header& header, const TargetPlace& place);
  void count_control() { ++sent_; }

  // Receiving.
  bool has_receives() const { return !receives_.empty(); }
  // The peer has left, and nothing of it is under way. False if that is an error.
  bool end_receives();
  // Where a written fragment lies. Empty if it makes no sense.
  ConstBytes written(const Header& header, bool is_slot) const;
  // A fragment has come: delivers and releases it, or keeps it until its receive is posted.
  Status accept(const Arrival& arrival, ReceivePool& pool);
  // Delivers what was kept, as far as receives were posted meanwhile.
  Status accept_kept(ReceivePool& pool);
  void return_credit();
  bool is_grant_due() const;
  // Fills in what this channel's receiving side announces.
  void announce(Header& header);

  // The next receive whose target the peer should be told, if any: large, and not too many at a time.
  struct Target {
    uint64_t message = 0;
    Envelope expected;
    Bytes bytes;
  };
  std::optional<Target> next_target();
  size_t spots_for(size_t size_bytes) const { return size_bytes / write_bytes_ + 2; }
  // What became of next_target(): its landings and registration, or nothing.
  void open_target(std::optional<uint32_t> ticket, std::shared_ptr<const Lease> lease);
  bool has_open_targets() const { return open_targets_ > 0; }

  // Forgets all that is posted and kept; nothing of it completes. Buffers that were kept stay with the caller's pool.
  void drop_all();

  Link& link() { return link_; }
  uint8_t index() const { return index_; }

  std::vector<SendOperation*> free_slots;    // for Data and Target
  std::vector<WriteOperation*> free_writes;  // for payloads that go the other ways
  SendOperation grant;

 private:
  struct Outgoing {
    Token token = 0;
    size_t parts = 0;  // fragments and headers with the provider
    bool is_cut = false;
    std::shared_ptr<const Lease> source{};  // null: none is needed, or none yet
  };
  struct Incoming {
    Receive receive;
    uint64_t bytes_left = 0;  // not yet here
    bool has_begun = false;
    std::optional<Mismatch> mismatch{};
    std::optional<uint32_t> ticket{};  // its target is known to the peer
    std::shared_ptr<const Lease> lease{};
    bool is_complete() const { return has_begun && bytes_left == 0; }
  };
  struct KnownTarget {
    Header header;
    TargetPlace place;
  };
  bool outgoing_is_known() const { return send_number_ - outgoing_number_ < outgoing_.size(); }
  const KnownTarget* find_target() const;
  Status release(const Arrival& arrival, ReceivePool& pool);
  void free_slot(uint32_t index);
  void close_target(Incoming& incoming);
  Status deliver(const Arrival& arrival);
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
  uint64_t fragment_bytes_ = 0, write_bytes_ = 0;

  uint64_t peer_credits_ = 0;  // what we may have in the peer's buffers
  SlotTerms peer_slots_;       // where we may write; rails 0: nowhere
  std::deque<Send> sends_;
  uint64_t send_number_ = 0;         // of the front
  size_t send_offset_ = 0;           // of the front: cut so far
  uint32_t send_writes_ = 0;         // of the front: fragments written to its target so far
  std::deque<Outgoing> outgoing_;    // those that are cut, wholly or in part, and not complete
  uint64_t outgoing_number_ = 0;     // of the front
  uint64_t sent_ = 0, allowed_ = 0;  // messages of libfabric's that need credit, ever
  uint32_t slots_used_ = 0, slots_allowed_ = 0;
  std::map<uint64_t, KnownTarget> known_targets_;  // by message, not yet cut

  std::deque<Incoming> receives_;
  uint64_t receive_number_ = 0;  // of the front
  std::vector<Arrival> kept_;
  uint64_t consumed_ = 0, announced_ = 0;  // likewise, ever
  Bytes slots_;
  uint32_t ticket_ = 0;
  std::vector<bool> slot_is_done_;
  uint32_t slots_freed_ = 0, slots_announced_ = 0;
  uint64_t next_target_ = 0;  // message
  size_t open_targets_ = 0;
};

}  // namespace ccom::ofi
