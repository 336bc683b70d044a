// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/receiver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace ccom::tcp {
namespace {

// A message that fits is read in one call with its header and copied once more, which is cheaper than a second call.
// For larger ones the header is read first.
constexpr size_t kAheadBytes = size_t{16} << 10;
// Small messages use line 0 only.
constexpr size_t ahead_bytes_of(size_t line) { return line == 0 ? kAheadBytes : sizeof(FragmentHeader); }

}  // namespace

Receiver::Receiver(const Route& route, std::span<const std::unique_ptr<Line>> lines, size_t grid, bool crc,
                   BufferPool& pool)
    : route_(route), lines_(lines), grid_(grid), crc_(crc), pool_(pool), inbound_(lines.size()) {}

bool Receiver::has_read_ahead() const {
  return std::ranges::any_of(inbound_, [](const Inbound& in) { return in.header || in.begin != in.end; });
}

// The first fragment of a message uses line 0 (see wire.h); before it, other lines need not be read.
bool Receiver::wants(size_t i) const {
  if (queue_.empty()) return false;
  const Inbound& in = inbound_[i];
  if (in.message != nullptr) return true;
  if (in.header) return in.header->message - front_number_ < queue_.size();
  return i == 0 || !queue_.front().seen.empty();
}

Status Receiver::pump(bool ask_first, Events& events) {
  Status status;
  for (size_t i = 0; i < lines_.size() && status.is_ok() && !mismatch_; ++i) {
    Line& line = *lines_[i];
    if (line.input_ended || !wants(i) || (ask_first && line.read_armed)) continue;
    bool is_dry = false;
    status = pump_line(i, is_dry);
    if (is_dry && ask_first && !line.input_ended && wants(i)) arm(line, Direction::Read);
  }
  events.completed.insert(events.completed.end(), retired_.begin(), retired_.end());
  retired_.clear();
  CCOM_TRY(std::move(status));
  if (mismatch_) {
    events.mismatch = mismatch_;
    return Status::ok();
  }
  if (!has_ended()) return Status::ok();
  if (!queue_.front().receive.may_end || !queue_.front().seen.empty()) {
    return peer_error(Code::RemoteError, route_, "receive from", "the peer has closed the connection");
  }
  for (const Message& message : queue_) events.ended.push_back(message.receive.token);
  queue_.clear();
  return Status::ok();
}

// Whether the front message can never complete. Lines end one by one; an open one may carry the missing fragments.
bool Receiver::has_ended() const {
  if (queue_.empty() || !lines_.front()->input_ended) return false;
  return queue_.front().seen.empty() || std::ranges::all_of(lines_, [](const auto& line) { return line->input_ended; });
}

Status Receiver::pump_line(size_t i, bool& is_dry) {
  Inbound& in = inbound_[i];
  for (size_t moved_bytes = 0; moved_bytes < kPumpBytes && wants(i);) {
    if (!in.header) {
      CCOM_TRY_ASSIGN(const Read read, read_header(i));
      is_dry = read != Read::Some;
      if (is_dry) return Status::ok();
      CCOM_TRY(accept_header(i));
    }
    if (in.message == nullptr) CCOM_TRY(match(i));
    if (in.message == nullptr) return Status::ok();  // not posted yet, or a mismatch
    CCOM_TRY_ASSIGN(const Read read, read_payload(i));
    is_dry = read != Read::Some;
    if (is_dry) return Status::ok();
    moved_bytes += sizeof(FragmentHeader) + in.header->length_bytes;
    CCOM_TRY(finish(i));
  }
  return Status::ok();
}

// Reads into `wanted` and then up to `ahead_bytes` beyond; got_bytes counts the part in `wanted`.
Result<Receiver::Read> Receiver::read(size_t i, Bytes wanted, size_t ahead_bytes, size_t& got_bytes) {
  Inbound& in = inbound_[i];
  std::array<iovec, 2> parts{{{wanted.data(), wanted.size()}, {in.ahead.get() + in.end, ahead_bytes}}};
  const ssize_t got = lines_[i]->receive(parts);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Read::Dry;
  if (got < 0 && errno == EBADMSG) return damaged("data that fails TLS verification");
  if (got < 0) return peer_error(Code::RemoteError, route_, "receive from", "connection lost", errno);
  if (got == 0) {
    lines_[i]->input_ended = true;
    if (!in.header && in.begin == in.end) return Read::Ended;
    return peer_error(Code::RemoteError, route_, "receive from",
                      "the peer closed the connection in the middle of a message");
  }
  lines_.front()->has_received = true;
  got_bytes = std::min(static_cast<size_t>(got), wanted.size());
  in.end += static_cast<size_t>(got) - got_bytes;
  return Read::Some;
}

Result<Receiver::Read> Receiver::read_header(size_t i) {
  Inbound& in = inbound_[i];
  if (in.unused().size() >= sizeof(FragmentHeader)) return Read::Some;
  if (in.ahead == nullptr) {
    in.ahead.reset(new (std::nothrow) std::byte[ahead_bytes_of(i)]);
    if (in.ahead == nullptr) return error(Code::OutOfMemory, "tcp: out of memory for %zu bytes", ahead_bytes_of(i));
  }
  std::memmove(in.ahead.get(), in.ahead.get() + in.begin, in.end - in.begin);
  in.end -= in.begin;
  in.begin = 0;
  size_t got_bytes = 0;
  const size_t wanted_bytes = is_small_next(i) ? kAheadBytes : sizeof(FragmentHeader);
  CCOM_TRY_ASSIGN(const Read result, read(i, {}, wanted_bytes - in.end, got_bytes));
  if (result != Read::Some) return result;
  return in.unused().size() >= sizeof(FragmentHeader) ? Read::Some : Read::Dry;
}

bool Receiver::is_small_next(size_t i) const {
  const Message& front = queue_.front();
  return i == 0 && front.seen.empty() && front.receive.size_bytes + sizeof(FragmentHeader) <= kAheadBytes;
}

// Checks that do not need the receive, which may not be posted yet.
Status Receiver::accept_header(size_t i) {
  Inbound& in = inbound_[i];
  FragmentHeader header;
  std::memcpy(&header, in.unused().data(), sizeof(header));
  in.begin += sizeof(header);
  in.header = header;
  in.message = nullptr;
  in.arrived_bytes = 0;
  in.crc = 0;
  if (!is_sealed(header)) return broken(in, "a corrupt header");
  if (header.message < front_number_ || header.message < in.last_number) return broken(in, "an out-of-order header");
  in.last_number = header.message;
  return Status::ok();
}

Status Receiver::match(size_t i) {
  Inbound& in = inbound_[i];
  const FragmentHeader& header = *in.header;
  const uint64_t index = header.message - front_number_;
  if (index >= queue_.size()) return Status::ok();
  Message& message = queue_[index];
  const Receive& receive = message.receive;
  if (header.envelope != receive.expected || header.size_bytes != receive.size_bytes) {
    mismatch_ = Mismatch{.peer = route_.peer,
                         .expected = receive.expected,
                         .received = header.envelope,
                         .expected_bytes = receive.size_bytes,
                         .received_bytes = header.size_bytes};
    return Status::ok();
  }
  if (!is_on_grid(header, grid_)) return broken(in, "a misplaced fragment");
  const size_t fragments = fragments_of(receive.size_bytes, grid_);
  if (fragments > 1) {
    message.seen.resize(fragments, false);
    const size_t fragment = header.offset_bytes / grid_;
    if (message.seen[fragment]) return broken(in, "a duplicate fragment");
    message.seen[fragment] = true;
  }
  if (receive.sink != nullptr && header.length_bytes > 0) {
    in.gathered = pool_.take();
    if (in.gathered == nullptr) return error(Code::OutOfMemory, "tcp: out of memory for a receive buffer");
  }
  in.message = &message;
  return Status::ok();
}

std::byte* Receiver::destination(Inbound& in) const {
  return in.gathered != nullptr ? in.gathered.get() : in.message->receive.target + in.header->offset_bytes;
}

Result<Receiver::Read> Receiver::read_payload(size_t i) {
  Inbound& in = inbound_[i];
  const size_t length = in.header->length_bytes;
  if (length == 0) return Read::Some;
  const Bytes whole(destination(in), length);
  while (in.arrived_bytes < length) {
    const Bytes rest = whole.subspan(in.arrived_bytes);
    size_t got_bytes = std::min(rest.size(), in.end - in.begin);
    const bool from_ahead = got_bytes > 0;
    if (from_ahead) {
      std::memcpy(rest.data(), in.unused().data(), got_bytes);
      in.begin += got_bytes;
    } else {
      in.begin = in.end = 0;
      const size_t ahead_bytes = length < kAheadBytes ? ahead_bytes_of(i) : sizeof(FragmentHeader);
      CCOM_TRY_ASSIGN(const Read result, read(i, rest, ahead_bytes, got_bytes));
      if (result != Read::Some) return result;
    }
    if (crc_) in.crc = crc32c(rest.first(got_bytes), in.crc);
    in.arrived_bytes += got_bytes;
    if (!from_ahead && got_bytes < rest.size()) return Read::Dry;  // an immediate retry would rarely find more
  }
  return Read::Some;
}

Status Receiver::finish(size_t i) {
  Inbound& in = inbound_[i];
  if (crc_ && in.crc != in.header->payload_crc) return broken(in, "a payload with a wrong checksum");
  if (in.gathered != nullptr) {
    in.message->receive.sink->consume(in.header->offset_bytes, {in.gathered.get(), in.header->length_bytes});
    pool_.give_back(std::move(in.gathered));
  }
  ++in.message->arrived_fragments;
  in.message = nullptr;
  in.header.reset();
  retire();
  return Status::ok();
}

void Receiver::retire() {
  while (!queue_.empty() &&
         queue_.front().arrived_fragments == fragments_of(queue_.front().receive.size_bytes, grid_)) {
    retired_.push_back(queue_.front().receive.token);
    queue_.pop_front();
    ++front_number_;
  }
}

void Receiver::clear() {
  queue_.clear();
  for (Inbound& in : inbound_) {
    in.message = nullptr;
    in.gathered.reset();
  }
}

uint64_t Receiver::memory_bytes() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < inbound_.size(); ++i) bytes += inbound_[i].ahead != nullptr ? ahead_bytes_of(i) : 0;
  return bytes;
}

Status Receiver::broken(const Inbound& in, const char* what) const {
  return damaged(std::string(what) + " (message " + std::to_string(in.header->message) + ", offset " +
                 std::to_string(in.header->offset_bytes) + ", " + std::to_string(in.header->length_bytes) + " bytes)");
}

Status Receiver::damaged(const std::string& what) const {
  return peer_error(Code::TransportError, route_, "receive from", what)
      .with_key(ErrorKey::Damaged)
      .with_cure("data is corrupted on the network path; check cabling, offloads, drivers and firmware of both hosts");
}

}  // namespace ccom::tcp
