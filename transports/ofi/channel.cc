// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ccom::ofi {

OfiChannel::OfiChannel(Board& board, Link& link, Rank peer, uint8_t index, uint64_t credits)
    : board_(board),
      link_(link),
      peer_(peer),
      index_(index),
      credits_(credits),
      grant_step_(std::max<uint64_t>(1, credits / 2)) {}

void OfiChannel::agree(uint64_t peer_credits, uint64_t fragment_bytes) {
  peer_credits_ = allowed_ = peer_credits;
  fragment_bytes_ = fragment_bytes;
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

Status OfiChannel::post_receive(const Receive& receive) {
  if (board_.stopped) return error(Code::InvalidUsage, "receive from rank %d: the transport was stopped", peer_);
  if (!board_.failed.is_ok()) return board_.failed;
  if (receive.size_bytes > 0 && receive.target == nullptr && receive.sink == nullptr) {
    return error(Code::InvalidArgument, "receive from rank %d: %zu bytes and no place for them", peer_,
                 receive.size_bytes);
  }
  receives_.push_back({receive, count_fragments(receive.size_bytes, fragment_bytes_)});
  schedule();
  return Status::ok();
}

ConstBytes OfiChannel::cut(Header& header) {
  const Send& send = sends_.front();
  if (send_offset_ == 0) outgoing_.push_back({send.token, count_fragments(send.payload.size(), fragment_bytes_)});
  const ConstBytes piece =
      send.payload.subspan(send_offset_, std::min<size_t>(fragment_bytes_, send.payload.size() - send_offset_));
  header.message = send_number_;
  header.message_bytes = send.payload.size();
  header.offset_bytes = send_offset_;
  header.envelope = send.envelope;
  header.payload_bytes = static_cast<uint32_t>(piece.size());
  ++sent_;
  send_offset_ += piece.size();
  if (send_offset_ == send.payload.size()) {
    sends_.pop_front();
    send_offset_ = 0;
    ++send_number_;
  }
  return piece;
}

void OfiChannel::fragment_is_out(uint64_t message) {
  if (outgoing_.empty()) return;  // dropped
  --outgoing_[message - outgoing_number_].fragments_left;
  while (!outgoing_.empty() && outgoing_.front().fragments_left == 0) {
    board_.completed.push_back(outgoing_.front().token);
    outgoing_.pop_front();
    ++outgoing_number_;
  }
}

Status OfiChannel::take_credit(uint64_t consumed) {
  if (consumed > sent_) return violation("grants more than it was sent");
  if (consumed + peer_credits_ <= allowed_) return Status::ok();  // overtaken by a later one
  allowed_ = consumed + peer_credits_;
  if (has_sends()) schedule();
  return Status::ok();
}

Status OfiChannel::accept(ReceiveOperation& operation, ReceivePool& pool) {
  operation.charged = this;
  const auto header = read_as<Header>(operation.bytes());
  if (header.message < receive_number_) return violation("sent a fragment twice");
  if (header.message - receive_number_ >= receives_.size()) {
    if (kept_.size() >= credits_) return violation("sent more than its credits allow");
    kept_.push_back(&operation);
    return Status::ok();
  }
  CCOM_TRY(deliver(header, operation.bytes().subspan(sizeof(Header))));
  return pool.release(operation);
}

Status OfiChannel::accept_kept(ReceivePool& pool) {
  if (kept_.empty() || receives_.empty()) return Status::ok();
  std::vector<ReceiveOperation*> again = std::exchange(kept_, {});
  for (ReceiveOperation* operation : again) CCOM_TRY(accept(*operation, pool));
  return Status::ok();
}

Status OfiChannel::deliver(const Header& header, ConstBytes payload) {
  Incoming& incoming = receives_[header.message - receive_number_];
  const Receive& receive = incoming.receive;
  if (header.envelope != receive.expected || header.message_bytes != receive.size_bytes) {
    incoming.mismatch = Mismatch{.peer = peer_,
                                 .expected = receive.expected,
                                 .received = header.envelope,
                                 .expected_bytes = receive.size_bytes,
                                 .received_bytes = header.message_bytes};
    return retire_receives();
  }
  CCOM_TRY(check_fragment(header, incoming));
  if (receive.sink != nullptr) {
    if (!payload.empty()) receive.sink->consume(header.offset_bytes, payload);
  } else if (!payload.empty()) {
    std::memcpy(receive.target + header.offset_bytes, payload.data(), payload.size());
  }
  --incoming.fragments_left;
  return retire_receives();
}

// Completions and mismatches keep the order of the receives, whatever order the fragments came in.
Status OfiChannel::retire_receives() {
  for (; !receives_.empty(); receives_.pop_front(), ++receive_number_) {
    const Incoming& front = receives_.front();
    if (front.mismatch) {
      board_.mismatch = front.mismatch;
      return error(Code::Mismatch, "rank %d sent another message than is expected here", peer_).with_peers({peer_});
    }
    if (front.fragments_left > 0) break;
    board_.completed.push_back(front.receive.token);
  }
  return Status::ok();
}

// Both sides cut alike, so offset and length follow from each other.
Status OfiChannel::check_fragment(const Header& header, const Incoming& incoming) const {
  if (incoming.fragments_left == 0) return violation("sent a fragment twice");
  const uint64_t size = incoming.receive.size_bytes;
  if (header.offset_bytes > size || header.offset_bytes % fragment_bytes_ != 0 ||
      header.payload_bytes != std::min(fragment_bytes_, size - header.offset_bytes)) {
    return violation("sent a fragment that is no part of its message");
  }
  return Status::ok();
}

bool OfiChannel::end_receives() {
  if (receives_.empty()) return true;
  const Incoming& front = receives_.front();
  const bool is_whole = front.fragments_left == count_fragments(front.receive.size_bytes, fragment_bytes_);
  if (!front.receive.may_end || !is_whole) return false;
  for (const Incoming& incoming : receives_) board_.ended.push_back(incoming.receive.token);
  receive_number_ += receives_.size();
  receives_.clear();
  return true;
}

void OfiChannel::return_credit() {
  ++consumed_;
  if (is_grant_due()) schedule();
}

void OfiChannel::drop_all() {
  sends_.clear();
  outgoing_.clear();
  receives_.clear();
  kept_.clear();
}

Status OfiChannel::violation(const char* what) const {
  return error(Code::TransportError, "rank %d %s on channel %d: its ccom differs from ours, or has a bug", peer_, what,
               index_)
      .with_peers({peer_});
}

}  // namespace ccom::ofi
