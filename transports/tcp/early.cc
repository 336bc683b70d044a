// SPDX-License-Identifier: Apache-2.0
//
// The receiver's fragments of messages that nobody has posted a receive for. Normally they stay in the kernel, which
// slows the sender down. Once a line is lost, however, what it carried comes by another line behind whatever had been
// sent there before: its receives may not be posted before what stands behind it has arrived. So if nothing moves for
// longer than it takes to give a line up and fragments stand in the way, they are read and kept. What was lost has been
// sent again by then, so that is no more than the kernels of both hosts held.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "transports/tcp/receiver.h"

namespace ccom::tcp {
namespace {

// A response is owed once the kernel has asked twice, and then for Rails::limit().
constexpr int kLimitsOfBlockage = 2;
// More than kernels hold, so it ends only what has another cause, as a line that goes on a thousand times slower.
constexpr size_t kMostEarlyBytes = size_t{256} << 20;

}  // namespace

bool Receiver::is_blocked(const Inbound& in) const {
  return in.header && in.message == nullptr && in.use == Inbound::Use::Deliver &&
         in.header->message - front_number_ >= queue_.size();
}

Status Receiver::keep_what_blocks() {
  if (std::exchange(seen_moved_, moved_) != moved_) blocked_since_ = {};
  if (std::ranges::none_of(inbound_, [this](const Inbound& in) { return is_blocked(in); })) return Status::ok();
  const auto now = Clock::now();
  if (blocked_since_ == Clock::time_point{}) blocked_since_ = now;
  if (now - blocked_since_ < kLimitsOfBlockage * rails_.limit() || early_bytes_ >= kMostEarlyBytes) return Status::ok();
  for (Inbound& in : inbound_) {
    if (is_blocked(in)) CCOM_TRY(gather(in, Inbound::Use::Keep));
  }
  return Status::ok();
}

// Messages may be much shorter than the buffer that gathers them.
Status Receiver::keep(Inbound& in) {
  const size_t length = in.header->length_bytes;
  Early early{*in.header, nullptr};
  if (length > 0) {
    early.payload.reset(new (std::nothrow) std::byte[length]);
    if (early.payload == nullptr) return error(Code::OutOfMemory, "tcp: out of memory for %zu bytes", length);
    std::memcpy(early.payload.get(), in.gathered.get(), length);
  }
  early_.push_back(std::move(early));
  early_bytes_ += sizeof(Early) + length;
  return Status::ok();
}

// To the receives that have been posted meanwhile.
Status Receiver::deliver_early() {
  for (size_t i = 0; i < early_.size() && !mismatch_;) {
    if (early_[i].header.message >= front_number_ + queue_.size()) {
      ++i;
      continue;
    }
    Early early = std::move(early_[i]);
    early_.erase(early_.begin() + static_cast<ptrdiff_t>(i));
    early_bytes_ -= sizeof(Early) + early.header.length_bytes;
    CCOM_TRY(deliver_one(early));
  }
  return Status::ok();
}

Status Receiver::deliver_one(const Early& early) {
  const FragmentHeader& header = early.header;
  if (header.message < front_number_) return Status::ok();  // the other copy has arrived
  CCOM_TRY_ASSIGN(Message* const message, find(header));
  if (message == nullptr) return Status::ok();
  if (!is_on_grid(header, grid_)) return damaged("a misplaced fragment");
  const size_t fragments = fragments_of(header.size_bytes, grid_);
  if (fragments > 1) message->arrived.resize(fragments, false);
  message->has_begun = true;
  if (has_arrived(*message, header)) return Status::ok();
  const ConstBytes payload(early.payload.get(), header.length_bytes);
  if (message->receive.sink != nullptr && !payload.empty()) {
    message->receive.sink->consume(header.offset_bytes, payload);
  } else if (!payload.empty()) {
    std::memcpy(message->receive.target + header.offset_bytes, payload.data(), payload.size());
  }
  return deliver(*message, header);
}

}  // namespace ccom::tcp
