// SPDX-License-Identifier: Apache-2.0
//
// An ordered pipe over fragments that may arrive in any order: numbering, splitting, placement, credits. Independent of
// libfabric; the transport moves the fragments.
//
// A fragment goes one of three ways, and each of a message may go another:
//
//   Inline  behind its header, into one of the receiver's buffers. Small messages, and all messages without writes.
//   Slot    written into one of the receiver's slots, without waiting for a target, and passed to the sink there.
//   Target  written to its final destination, after the receiver has announced it.
//
// Sender:   sent <= allowed = (consumed, as announced by the receiver) + credits; likewise for slots.
// Receiver: a fragment of a message without a posted receive stays in its buffer or slot. consumed counts buffers that
// are posted again; it is announced in every fragment in the other direction, and by a Grant when half of the credits
// or slots have been freed. So an unread channel holds at most `credits` buffers and its slots on this rank, and no
// other channel waits for them.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "transports/ofi/rails.h"
#include "transports/ofi/receive_pool.h"
#include "transports/ofi/wire.h"
#include "transports/ofi/write_tickets.h"
#include "transports/transport.h"

namespace ccom::ofi {

struct Link;
class OfiChannel;

// An outgoing message of libfabric.
struct SendOperation : Operation {
  Link* link = nullptr;
  OfiChannel* channel = nullptr;  // Data and Grant
  Kind kind{};
  uint64_t message = 0;  // Data: the message that it belongs to
  bool is_busy = false;  // queued or with the provider
};

enum class TransferMode : uint8_t { None, Inline, Slot, Target };

// A fragment to send; the header is complete.
struct Piece {
  TransferMode mode{};
  ConstBytes payload;
  uint64_t address = 0;  // remote address, unless inline
  std::array<uint64_t, kMaxRails> keys{};
  const Lease* source = nullptr;  // null: no registration needed
};

// A received fragment, complete and verified.
struct Arrival {
  Header header;
  ConstBytes payload;
  ReceiveOperation* operation = nullptr;  // the buffer that holds it; null: it was written by the peer
  bool is_in_place = false;               // already at its destination
};

// Shared by the channels and the transport. Owned by the transport.
struct Board {
  Status failed;  // the first error; final
  bool stopped = false;
  std::vector<OfiChannel*> ready;  // have work
  std::vector<Token> completed;    // not yet reported
  std::vector<Token> ended;        // not yet reported
  std::optional<Mismatch> mismatch;
  WriteTickets tickets;
};

class OfiChannel final : public Channel {
 public:
  OfiChannel(Board& board, Link& link, Rank peer, uint8_t index, uint64_t credits);

  Status post_send(const Send& send) override;
  Status post_receive(const Receive& receive) override;

  // The terms of the handshake. Nothing may be posted before; the peer, which may know the terms earlier, may send.
  // `theirs` are this channel's slots; writes are at most `write_bytes` long.
  void agree(uint64_t peer_credits, uint64_t fragment_bytes, const SlotTerms& theirs, uint64_t write_bytes);
  // Memory for the peer's writes; `ticket` identifies them.
  void offer_slots(Bytes memory, uint32_t slots, uint32_t ticket);
  // Adds the channel to the board's list, once.
  void schedule();
  void unschedule() { is_scheduled_ = false; }

  // Sending.
  bool has_sends() const { return !sends_.empty(); }
  bool has_credit() const { return sent_ < allowed_ && !free_slots.empty(); }
  // How the next fragment can be sent now.
  TransferMode next_mode() const;
  // True: the next fragment may be a remote write, so its message must be registered, see lend_source().
  bool needs_source() const { return !outgoing_is_known() || outgoing_.back().source == nullptr; }
  void lend_source(std::shared_ptr<const Lease> lease);
  ConstBytes front_payload() const { return sends_.front().payload; }
  // Fills in this side's fields of the next fragment's header.
  Piece cut(Header& header, TransferMode mode);
  // A fragment of that message, or its header, has been sent. A send completes with its last fragment, not when it is
  // copied: a rank that then stops calling progress() leaves nothing behind that others wait for.
  void part_is_out(uint64_t message);
  // The peer has announced what it has consumed. An error if that exceeds what was sent.
  Status take_credit(const Header& header);
  // An error if the peer has announced more than may be open.
  Status take_target(const Header& header, const TargetPlace& place);
  void count_control() { ++sent_; }

  // Receiving.
  bool has_receives() const { return !receives_.empty(); }
  // The peer has left and has nothing outstanding. False if that is an error.
  bool end_receives();
  // The location of a written fragment. Empty if invalid.
  ConstBytes written(const Header& header, bool is_slot) const;
  // A fragment has arrived: delivers and releases it, or keeps it until its receive is posted.
  Status accept(const Arrival& arrival, ReceivePool& pool);
  // Delivers kept fragments whose receives have been posted.
  Status accept_kept(ReceivePool& pool);
  void return_credit();
  bool is_grant_due() const;
  // Fills in the announcements of this channel's receiving side.
  void announce(Header& header);

  // The next receive whose target the peer should be told, if any: a large one, within the limit.
  struct Target {
    uint64_t message = 0;
    Envelope expected;
    Bytes bytes;
  };
  std::optional<Target> next_target();
  size_t spots_for(size_t size_bytes) const { return size_bytes / write_bytes_ + 2; }
  // The result of next_target(): its ticket and registration, or none.
  void open_target(std::optional<uint32_t> ticket, std::shared_ptr<const Lease> lease);
  bool has_open_targets() const { return open_targets_ > 0; }

  // Drops everything posted and kept; nothing of it completes. Kept buffers remain with the caller's pool.
  void drop_all();

  Link& link() { return link_; }
  uint8_t index() const { return index_; }

  std::vector<SendOperation*> free_slots;    // for Data and Target
  std::vector<WriteOperation*> free_writes;  // for payloads sent as Slot or Target
  SendOperation grant;

 private:
  struct Outgoing {
    Token token = 0;
    size_t parts = 0;  // fragments and headers with the provider
    bool is_cut = false;
    std::shared_ptr<const Lease> source{};  // null: not needed, or not available yet
  };
  struct Incoming {
    Receive receive;
    uint64_t bytes_left = 0;  // not received yet
    bool has_begun = false;
    std::optional<Mismatch> mismatch{};
    std::optional<uint32_t> ticket{};  // its target was announced to the peer
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
  const uint64_t credits_;     // fragments that the peer may have in our buffers
  const uint64_t grant_step_;  // a Grant is due for that many
  bool is_scheduled_ = false;
  uint64_t fragment_bytes_ = 0, write_bytes_ = 0;

  uint64_t peer_credits_ = 0;  // fragments that we may have in the peer's buffers
  SlotTerms peer_slots_;       // where we may write; rails 0: nowhere
  std::deque<Send> sends_;
  uint64_t send_number_ = 0;         // of the front
  size_t send_offset_ = 0;           // of the front: bytes split so far
  uint32_t send_writes_ = 0;         // of the front: fragments written to its target so far
  std::deque<Outgoing> outgoing_;    // partly or completely split, not complete
  uint64_t outgoing_number_ = 0;     // of the front
  uint64_t sent_ = 0, allowed_ = 0;  // fragments that need credit, in total
  uint32_t slots_used_ = 0, slots_allowed_ = 0;
  std::map<uint64_t, KnownTarget> known_targets_;  // by message, not yet split

  std::deque<Incoming> receives_;
  uint64_t receive_number_ = 0;  // of the front
  std::vector<Arrival> kept_;
  uint64_t consumed_ = 0, announced_ = 0;  // in total
  Bytes slots_;
  uint32_t ticket_ = 0;
  std::vector<bool> slot_is_done_;
  uint32_t slots_freed_ = 0, slots_announced_ = 0;
  uint64_t next_target_ = 0;  // message number
  size_t open_targets_ = 0;
};

}  // namespace ccom::ofi
