// SPDX-License-Identifier: Apache-2.0
//
// The sending side, and what both share. channel_receiving.cc has the other.
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

// Only if it is that very message: otherwise the receiver must see the difference before a byte is delivered.
const OfiChannel::KnownTarget* OfiChannel::find_target() const {
  const auto found = known_targets_.find(send_number_);
  if (found == known_targets_.end()) return nullptr;
  const Header& asked = found->second.header;
  const bool is_same = asked.envelope == sends_.front().envelope &&  //
                       asked.message_bytes == sends_.front().payload.size();
  return is_same ? &found->second : nullptr;
}

// What is left of a large message when the rest is short goes inline.
Way OfiChannel::next_way() const {
  if (sends_.empty() || !has_credit()) return Way::None;
  const size_t left = sends_.front().payload.size() - send_offset_;
  if (peer_slots_.rails == 0 || left < 2 * fragment_bytes_) return Way::Inline;
  if (free_writes.empty()) return Way::None;
  if (find_target() != nullptr) return Way::Target;
  return static_cast<int32_t>(slots_allowed_ - slots_used_) > 0 ? Way::Slot : Way::None;
}

void OfiChannel::lend_source(std::shared_ptr<const Lease> lease) {
  if (!outgoing_is_known()) outgoing_.push_back({.token = sends_.front().token});
  outgoing_.back().source = std::move(lease);
}

Piece OfiChannel::cut(Header& header, Way way) {
  const Send& send = sends_.front();
  if (!outgoing_is_known()) outgoing_.push_back({.token = send.token});
  Outgoing& outgoing = outgoing_.back();
  const size_t most = way == Way::Inline ? fragment_bytes_ : write_bytes_;
  Piece piece{way, send.payload.subspan(send_offset_, std::min(most, send.payload.size() - send_offset_))};
  if (way == Way::Slot) {
    const uint32_t slot = slots_used_++ % peer_slots_.slots;
    piece.address = peer_slots_.address + uint64_t{slot} * peer_slots_.slot_bytes;
    piece.keys = peer_slots_.keys;
    header.landing = landing_of(peer_slots_.first_ticket, slot);
  } else if (way == Way::Target) {
    const TargetPlace& place = find_target()->place;
    piece.address = place.address + send_offset_;
    piece.keys = place.keys;
    header.landing = landing_of(place.ticket, send_writes_++);
  } else {
    header.landing = kInline;
  }
  if (way != Way::Inline) piece.source = outgoing.source.get();
  header.message = send_number_;
  header.message_bytes = send.payload.size();
  header.offset_bytes = send_offset_;
  header.envelope = send.envelope;
  header.payload_bytes = static_cast<uint32_t>(piece.payload.size());
  ++sent_;
  outgoing.parts += way == Way::Inline ? 1 : 2;
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
    return violation("grants more than it was sent");
  }
  // What is not more was overtaken by a later one.
  allowed_ = std::max(allowed_, header.consumed + peer_credits_);
  const uint32_t slots = header.slots_freed + peer_slots_.slots;
  if (static_cast<int32_t>(slots - slots_allowed_) > 0) slots_allowed_ = slots;
  if (has_sends()) schedule();
  return Status::ok();
}

void OfiChannel::take_target(const Header& header, const TargetPlace& place) {
  if (header.message < send_number_ || peer_slots_.rails == 0) return;  // it went by slots
  known_targets_[header.message] = {header, place};
  if (has_sends()) schedule();
}

void OfiChannel::drop_all() {
  sends_.clear();
  outgoing_.clear();
  for (Incoming& incoming : receives_) close_target(incoming);
  receives_.clear();
  kept_.clear();
}

Status OfiChannel::violation(const char* what) const {
  return error(Code::TransportError, "rank %d %s on channel %d: its ccom differs from ours, or has a bug", peer_, what,
               index_)
      .with_peers({peer_});
}

}  // namespace ccom::ofi
