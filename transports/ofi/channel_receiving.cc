// SPDX-License-Identifier: Apache-2.0
//
// The receiving side of a channel.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/ofi/channel.h"
#include "transports/ofi/link.h"

namespace ccom::ofi {
namespace {

// Announcing a target costs both sides a message; below this size a copy out of a slot is cheaper.
constexpr size_t kTargetBytes = size_t{128} << 10;

}  // namespace

Status OfiChannel::post_receive(const Receive& receive) {
  if (board_.stopped) return error(Code::InvalidUsage, "receive from rank %d: the transport was stopped", peer_);
  if (!board_.failed.is_ok()) return board_.failed;
  if (receive.size_bytes > 0 && receive.target == nullptr && receive.sink == nullptr) {
    return error(Code::InvalidArgument, "receive from rank %d: %zu bytes, but neither target nor sink", peer_,
                 receive.size_bytes);
  }
  receives_.push_back({.receive = receive, .bytes_left = receive.size_bytes});
  schedule();
  return Status::ok();
}

void OfiChannel::offer_slots(Bytes memory, uint32_t slots, uint32_t ticket) {
  slots_ = memory;
  ticket_ = ticket;
  slot_is_done_.assign(slots, false);
}

ConstBytes OfiChannel::written(const Header& header, bool is_slot) const {
  if (is_slot) {
    const size_t slot_bytes = slots_.size() / slot_is_done_.size();
    if (header.payload_bytes > slot_bytes) return {};
    return slots_.subspan(index_of(header.immediate) * slot_bytes, header.payload_bytes);
  }
  if (header.message - receive_number_ >= receives_.size()) return {};
  const Receive& receive = receives_[header.message - receive_number_].receive;
  if (header.offset_bytes > receive.size_bytes || header.payload_bytes > receive.size_bytes - header.offset_bytes) {
    return {};
  }
  return {receive.target + header.offset_bytes, header.payload_bytes};
}

Status OfiChannel::accept(const Arrival& arrival, ReceivePool& pool) {
  if (arrival.operation != nullptr) arrival.operation->charged = this;
  if (arrival.header.message < receive_number_) {
    // A payload that nothing waited for any more, see Kind::Stopped.
    return link_.is_cut ? release(arrival, pool) : violation("sent a duplicate fragment");
  }
  if (arrival.header.message - receive_number_ >= receives_.size()) {
    if (kept_.size() >= credits_ + slot_is_done_.size()) return violation("sent more than its credits allow");
    kept_.push_back(arrival);
    return Status::ok();
  }
  CCOM_TRY(deliver(arrival));
  return release(arrival, pool);
}

Status OfiChannel::accept_kept(ReceivePool& pool) {
  if (kept_.empty() || receives_.empty()) return Status::ok();
  const std::vector<Arrival> again = std::exchange(kept_, {});
  for (const Arrival& arrival : again) CCOM_TRY(accept(arrival, pool));
  return Status::ok();
}

Status OfiChannel::release(const Arrival& arrival, ReceivePool& pool) {
  if (arrival.operation != nullptr) return pool.release(*arrival.operation);
  if (!arrival.is_in_place) free_slot(index_of(arrival.header.immediate));
  return Status::ok();
}

// Slots are used in order, so the announcement is the number of slots freed in that order.
void OfiChannel::free_slot(uint32_t index) {
  slot_is_done_[index] = true;
  const auto slots = static_cast<uint32_t>(slot_is_done_.size());
  for (; slot_is_done_[slots_freed_ % slots]; ++slots_freed_) slot_is_done_[slots_freed_ % slots] = false;
  if (is_grant_due()) schedule();
}

Status OfiChannel::deliver(const Arrival& arrival) {
  const Header& header = arrival.header;
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
  if (!arrival.payload.empty() && !arrival.is_in_place) {
    if (receive.sink != nullptr) {
      receive.sink->consume(header.offset_bytes, arrival.payload);
    } else {
      std::memcpy(receive.target + header.offset_bytes, arrival.payload.data(), arrival.payload.size());
    }
  }
  incoming.has_begun = true;
  incoming.bytes_left -= header.payload_bytes;
  return retire_receives();
}

// Completions and mismatches keep the order of the receives, whatever the order of fragments.
Status OfiChannel::retire_receives() {
  for (; !receives_.empty(); receives_.pop_front(), ++receive_number_) {
    Incoming& front = receives_.front();
    if (front.mismatch) {
      board_.mismatch = front.mismatch;
      return error(Code::Mismatch, "rank %d sent a different message than this rank expects", peer_)
          .with_peers({peer_});
    }
    if (!front.is_complete()) break;
    if (front.ticket) schedule();  // allows the next target
    close_target(front);
    board_.completed.push_back(front.receive.token);
  }
  return Status::ok();
}

Status OfiChannel::check_fragment(const Header& header, const Incoming& incoming) const {
  if (header.payload_bytes > incoming.bytes_left || incoming.is_complete())
    return violation("sent a duplicate fragment");
  const uint64_t size = incoming.receive.size_bytes;
  const uint64_t end = header.offset_bytes + header.payload_bytes;
  if (header.offset_bytes > size || end > size || header.offset_bytes % 16 != 0 ||
      (end != size && (header.payload_bytes % 16 != 0 || header.payload_bytes == 0))) {
    return violation("sent a fragment outside its message");
  }
  return Status::ok();
}

bool OfiChannel::end_receives() {
  if (receives_.empty()) return true;
  if (!receives_.front().receive.may_end || receives_.front().has_begun) return false;
  for (Incoming& incoming : receives_) {
    close_target(incoming);
    board_.ended.push_back(incoming.receive.token);
  }
  receive_number_ += receives_.size();
  receives_.clear();
  return true;
}

void OfiChannel::return_credit() {
  ++consumed_;
  if (is_grant_due()) schedule();
}

bool OfiChannel::is_grant_due() const {
  const size_t slot_step = std::max<size_t>(1, slot_is_done_.size() / 2);
  return consumed_ - announced_ >= grant_step_ || slots_freed_ - slots_announced_ >= slot_step;
}

void OfiChannel::announce(Header& header) {
  header.consumed = announced_ = consumed_;
  header.slots_freed = slots_announced_ = slots_freed_;
}

std::optional<OfiChannel::Target> OfiChannel::next_target() {
  if (peer_slots_.rails == 0 || open_targets_ >= kOpenTargets) return std::nullopt;
  next_target_ = std::max(next_target_, receive_number_);
  for (; next_target_ - receive_number_ < receives_.size(); ++next_target_) {
    const Incoming& incoming = receives_[next_target_ - receive_number_];
    const Receive& receive = incoming.receive;
    if (receive.target == nullptr || incoming.bytes_left < kTargetBytes || incoming.mismatch) continue;
    return Target{next_target_, receive.expected, {receive.target, receive.size_bytes}};
  }
  return std::nullopt;
}

void OfiChannel::open_target(std::optional<uint32_t> ticket, std::shared_ptr<const Lease> lease) {
  Incoming& incoming = receives_[next_target_++ - receive_number_];
  if (!ticket) return;
  incoming.ticket = ticket;
  incoming.lease = std::move(lease);
  ++open_targets_;
}

void OfiChannel::close_target(Incoming& incoming) {
  if (!incoming.ticket) return;
  board_.tickets.close(*incoming.ticket);
  incoming.ticket.reset();
  incoming.lease.reset();
  --open_targets_;
}

}  // namespace ccom::ofi
