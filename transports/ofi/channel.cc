// SPDX-License-Identifier: Apache-2.0
//
// The sending side, and common parts. channel_receiving.cc has the receiving side.
#include "transports/ofi/channel.h"

#include <algorithm>
#include <utility>

namespace ccom::ofi {

OfiChannel::OfiChannel(Board& board, Link& link, Rank peer, uint8_t index, uint64_t credits)
    : board_(board),
      link_(link),
      peer_(peer),
      index_(index),
      credits_(credits),
      grant_step_(std::max<uint64_t>(1, credits / 2)) {}

void OfiChannel::agree(uint64_t peer_credits, uint64_t fragment_bytes, const SlotTerms& theirs, uint64_t write_bytes) {
  peer_credits_ = allowed_ = peer_credits;
  fragment_bytes_ = fragment_bytes;
  peer_slots_ = theirs;
  slots_allowed_ = theirs.slots;
  write_bytes_ = write_bytes;
}

void OfiChannel::schedule() {
  if (std::exchange(is_scheduled_, true)) return;
  board_.ready.push_back(this);
}

Status OfiChannel::post_send(const Send& send) {
  if (board_.stopped) return error(Code::InvalidUsage, "send to rank %d: the transport was stopped", peer_);
  if (!board_.failed.is_ok()) return board_.failed;
  sends_.push_back(send);
  schedule();
  return Status::ok();
}

// Only if the message matches: otherwise the receiver must detect the mismatch before any byte is delivered.
const OfiChannel::KnownTarget* OfiChannel::find_target() const {
  const auto found = known_targets_.find(send_number_);
  if (found == known_targets_.end()) return nullptr;
  const Header& asked = found->second.header;
  const bool is_same = asked.envelope == sends_.front().envelope &&  //
                       asked.message_bytes == sends_.front().payload.size();
  return is_same ? &found->second : nullptr;
}

// The short tail of a large message is sent inline.
TransferMode OfiChannel::next_mode() const {
  if (sends_.empty() || !has_credit()) return TransferMode::None;
  const size_t left = sends_.front().payload.size() - send_offset_;
  if (peer_slots_.rails == 0 || left < 2 * fragment_bytes_) return TransferMode::Inline;
  if (free_writes.empty()) return TransferMode::None;
  if (find_target() != nullptr) return TransferMode::Target;
  return static_cast<int32_t>(slots_allowed_ - slots_used_) > 0 ? TransferMode::Slot : TransferMode::None;
}

void OfiChannel::lend_source(std::shared_ptr<const Lease> lease) {
  if (!outgoing_is_known()) outgoing_.push_back({.token = sends_.front().token});
  outgoing_.back().source = std::move(lease);
}

Piece OfiChannel::cut(Header& header, TransferMode mode) {
  const Send& send = sends_.front();
  if (!outgoing_is_known()) outgoing_.push_back({.token = send.token});
  Outgoing& outgoing = outgoing_.back();
  const size_t most = mode == TransferMode::Inline ? fragment_bytes_ : write_bytes_;
  Piece piece{mode, send.payload.subspan(send_offset_, std::min(most, send.payload.size() - send_offset_))};
  if (mode == TransferMode::Slot) {
    const uint32_t slot = slots_used_++ % peer_slots_.slots;
    piece.address = peer_slots_.address + uint64_t{slot} * peer_slots_.slot_bytes;
    piece.keys = peer_slots_.keys;
    header.immediate = immediate_of(peer_slots_.first_ticket, slot);
  } else if (mode == TransferMode::Target) {
    const TargetPlace& place = find_target()->place;
    piece.address = place.address + send_offset_;
    piece.keys = place.keys;
    header.immediate = immediate_of(place.ticket, send_writes_++);
  } else {
    header.immediate = kInline;
  }
  if (mode != TransferMode::Inline) piece.source = outgoing.source.get();
  header.message = send_number_;
  header.message_bytes = send.payload.size();
  header.offset_bytes = send_offset_;
  header.envelope = send.envelope;
  header.payload_bytes = static_cast<uint32_t>(piece.payload.size());
  ++sent_;
  outgoing.parts += mode == TransferMode::Inline ? 1 : 2;
  send_offset_ += piece.payload.size();
  if (send_offset_ == send.payload.size()) {
    outgoing.is_cut = true;
    known_targets_.erase(send_number_);
    sends_.pop_front();
    send_offset_ = 0;
    send_writes_ = 0;
    ++send_number_;
  }
  return piece;
}

void OfiChannel::part_is_out(uint64_t message) {
  if (outgoing_.empty()) return;  // dropped
  --outgoing_[message - outgoing_number_].parts;
  while (!outgoing_.empty() && outgoing_.front().is_cut && outgoing_.front().parts == 0) {
    board_.completed.push_back(outgoing_.front().token);
    outgoing_.pop_front();
    ++outgoing_number_;
  }
}

Status OfiChannel::take_credit(const Header& header) {
  if (header.consumed > sent_ || static_cast<int32_t>(slots_used_ - header.slots_freed) < 0) {
    return violation("granted more credits than were used");
  }
  // A smaller value was overtaken by a later one.
  allowed_ = std::max(allowed_, header.consumed + peer_credits_);
  const uint32_t slots = header.slots_freed + peer_slots_.slots;
  if (static_cast<int32_t>(slots - slots_allowed_) > 0) slots_allowed_ = slots;
  if (has_sends()) schedule();
  return Status::ok();
}

// A target is open until its message has been received, and known until then at most.
Status OfiChannel::take_target(const Header& header, const TargetPlace& place) {
  if (header.message < send_number_ || peer_slots_.rails == 0) return Status::ok();  // the message used slots
  known_targets_[header.message] = {header, place};
  if (known_targets_.size() > kOpenTargets) return violation("announced more targets than it may have open");
  if (has_sends()) schedule();
  return Status::ok();
}

void OfiChannel::drop_all() {
  sends_.clear();
  outgoing_.clear();
  for (Incoming& incoming : receives_) close_target(incoming);
  receives_.clear();
  kept_.clear();
}

Status OfiChannel::violation(const char* what) const {
  return error(Code::TransportError,
               "rank %d %s on channel %d; it runs another version of ccom, or this is a bug in ccom", peer_, what,
               index_)
      .with_peers({peer_});
}

}  // namespace ccom::ofi
