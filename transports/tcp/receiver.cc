// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/receiver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace ccom::tcp {
namespace {

// A message that fits is read in one call with its header and copied once more, which is cheaper than a second call.
// For larger ones the header is read first.
constexpr size_t kAheadBytes = size_t{16} << 10;
// While a message is waited for, how often the lines are looked at on which it would come after a loss only.
constexpr unsigned kPumpsPerGlance = 16;

}  // namespace

Receiver::Receiver(const Route& route, std::span<const std::unique_ptr<Line>> lines, Rails& rails, size_t grid,
                   bool crc, BufferPool& pool)
    : route_(route), lines_(lines), rails_(rails), grid_(grid), crc_(crc), pool_(pool), inbound_(lines.size()) {}

// Small messages use one line only, the first unless it is lost.
size_t Receiver::ahead_bytes_of(size_t line) const {
  return line == 0 || rails_.fail_over() ? kAheadBytes : sizeof(FragmentHeader);
}

bool Receiver::has_read_ahead() const {
  const auto has_some = [](const Inbound& in) { return in.header || in.begin != in.end; };
  return !early_.empty() || std::ranges::any_of(inbound_, has_some);
}

// The first fragment of a message uses one line (see wire.h); before it, other lines need not be read.
bool Receiver::wants(size_t i) const {
  if (queue_.empty()) return false;
  const Inbound& in = inbound_[i];
  if (in.message != nullptr || in.use != Inbound::Use::Deliver) return true;
  if (in.header) return in.header->message - front_number_ < queue_.size();
  return i == opening_ || queue_.front().has_begun || rails_.fail_over();
}

bool Receiver::is_worth_reading(size_t i) const {
  if (lines_[i]->input_ended || !wants(i)) return false;
  const bool is_idle = i != opening_ && !inbound_[i].header && !queue_.front().has_begun;
  return !is_idle || pumps_ % kPumpsPerGlance == 0;
}

Status Receiver::pump_lines(bool ask_first) {
  if (!early_.empty()) CCOM_TRY(deliver_early());
  ++pumps_;
  for (size_t i = 0; i < lines_.size() && !mismatch_; ++i) {
    Line& line = *lines_[i];
    if ((ask_first && line.read_armed) || !(ask_first ? !line.input_ended && wants(i) : is_worth_reading(i))) continue;
    bool is_dry = false;
    CCOM_TRY(pump_line(i, is_dry));
    if (is_dry && ask_first && !line.input_ended && wants(i)) arm(line, Direction::Read);
  }
  return rails_.fail_over() && !queue_.empty() ? keep_what_blocks() : Status::ok();
}

Status Receiver::pump(bool ask_first, Events& events) {
  const uint64_t moved_before = moved_;
  Status status = pump_lines(ask_first);
  events.completed.insert(events.completed.end(), retired_.begin(), retired_.end());
  retired_.clear();
  CCOM_TRY(std::move(status));
  if (mismatch_) {
    events.mismatch = mismatch_;
    return Status::ok();
  }
  if (!has_ended()) return Status::ok();
  // What a lost line has brought before the others ended is read first.
  if (rails_.fail_over() && (!std::exchange(had_ended_, true) || moved_ != moved_before)) return Status::ok();
  return end(events);
}

Status Receiver::end(Events& events) {
  const auto was_closed = [](const auto& line) { return line->input_ended && !line->is_failed; };
  if (!std::ranges::any_of(lines_, was_closed))
    return peer_error(Code::RemoteError, route_, "receive from", "connection lost");
  if (!queue_.front().receive.may_end || queue_.front().has_begun)
    return peer_error(Code::RemoteError, route_, "receive from", "the peer has closed the connection");
  for (const Message& message : queue_) events.ended.push_back(message.receive.token);
  queue_.clear();
  return Status::ok();
}

// Whether the front message can never complete. Lines end one by one; an open one may carry the missing fragments.
bool Receiver::has_ended() const {
  if (queue_.empty()) return false;
  if (!rails_.fail_over() && !queue_.front().has_begun) return lines_.front()->input_ended;
  return std::ranges::all_of(lines_, [](const auto& line) { return line->input_ended || line->is_lost; });
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
    if (in.message == nullptr && in.use == Inbound::Use::Deliver) CCOM_TRY(match(i));
    if (in.message == nullptr && in.use == Inbound::Use::Deliver) return Status::ok();  // not posted yet, or a mismatch
    CCOM_TRY_ASSIGN(const Read read, read_payload(i));
    is_dry = read != Read::Some;
    if (is_dry) return Status::ok();
    moved_bytes += sizeof(FragmentHeader) + in.header->length_bytes;
    CCOM_TRY(finish(i));
  }
  return Status::ok();
}

// The stream has ended, or fails, in the middle of a message or not. A fragment that another line will bring again is
// forgotten.
Result<Receiver::Read> Receiver::cut_off(size_t i, int number) {
  Inbound& in = inbound_[i];
  if (rails_.fail_over()) {
    const bool goes_on = number == 0 || rails_.lose_for_good(i, std::generic_category().message(number));
    lines_[i]->input_ended = true;
    if (in.gathered != nullptr) pool_.give_back(std::move(in.gathered));
    in = Inbound();
    if (goes_on) return Read::Ended;
  }
  if (number != 0) return peer_error(Code::RemoteError, route_, "receive from", "connection lost", number);
  lines_[i]->input_ended = true;
  if (!in.header && in.begin == in.end) return Read::Ended;
  return peer_error(Code::RemoteError, route_, "receive from",
                    "the peer closed the connection in the middle of a message");
}

// Reads into `wanted` and then up to `ahead_bytes` beyond; got_bytes counts the part in `wanted`.
Result<Receiver::Read> Receiver::read(size_t i, Bytes wanted, size_t ahead_bytes, size_t& got_bytes) {
  Inbound& in = inbound_[i];
  std::array<iovec, 2> parts{{{wanted.data(), wanted.size()}, {in.ahead.get() + in.end, ahead_bytes}}};
  const ssize_t got = lines_[i]->receive(parts);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Read::Dry;
  if (got < 0 && errno == EBADMSG) return damaged("data that fails TLS verification");
  if (got <= 0) return cut_off(i, got < 0 ? errno : 0);
  lines_.front()->has_received = true;
  if (!lines_[i]->is_lost) rails_.confirm();
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
  return i == opening_ && !front.has_begun && front.receive.size_bytes + sizeof(FragmentHeader) <= kAheadBytes;
}

// Checks that do not need the receive, which may not be posted yet.
Status Receiver::accept_header(size_t i) {
  Inbound& in = inbound_[i];
  FragmentHeader header;
  std::memcpy(&header, in.unused().data(), sizeof(header));
  in.begin += sizeof(header);
  in.header = header;
  in.message = nullptr;
  in.use = Inbound::Use::Deliver;
  in.arrived_bytes = 0;
  in.crc = 0;
  if (!is_sealed(header)) return broken(in, "a corrupt header");
  if (rails_.fail_over() && header.length_bytes > grid_) return broken(in, "a misplaced fragment");
  if (rails_.fail_over() && header.message < front_number_) return gather(in, Inbound::Use::Drop);
  if (header.message < front_number_ || (!rails_.fail_over() && header.message < in.last_number))
    return broken(in, "an out-of-order header");
  in.last_number = header.message;
  if (rails_.fail_over() && header.offset_bytes == 0) opening_ = i;
  return Status::ok();
}

Status Receiver::gather(Inbound& in, Inbound::Use use) {
  in.use = use;
  in.message = nullptr;
  if (in.header->length_bytes == 0 || in.gathered != nullptr) return Status::ok();
  in.gathered = pool_.take();
  if (in.gathered == nullptr) return error(Code::OutOfMemory, "tcp: out of memory for a receive buffer");
  return Status::ok();
}

// The receive that the fragment is for; null: none that is posted, or a mismatch.
Result<Receiver::Message*> Receiver::find(const FragmentHeader& header) {
  const uint64_t index = header.message - front_number_;
  if (index >= queue_.size()) return nullptr;
  Message& message = queue_[index];
  const Receive& receive = message.receive;
  if (header.envelope == receive.expected && header.size_bytes == receive.size_bytes) return &message;
  mismatch_ = Mismatch{.peer = route_.peer,
                       .expected = receive.expected,
                       .received = header.envelope,
                       .expected_bytes = receive.size_bytes,
                       .received_bytes = header.size_bytes};
  return nullptr;
}

bool Receiver::has_arrived(const Message& message, const FragmentHeader& header) const {
  if (message.arrived.empty()) return message.arrived_fragments > 0;
  return message.arrived[header.offset_bytes / grid_];
}

Status Receiver::match(size_t i) {
  Inbound& in = inbound_[i];
  const FragmentHeader& header = *in.header;
  CCOM_TRY_ASSIGN(Message* const message, find(header));
  if (message == nullptr) return Status::ok();
  if (!is_on_grid(header, grid_)) return broken(in, "a misplaced fragment");
  const size_t fragments = fragments_of(header.size_bytes, grid_);
  if (fragments > 1) message->arrived.resize(fragments, false);
  message->has_begun = true;
  if (has_arrived(*message, header)) {
    if (!rails_.fail_over()) return broken(in, "a duplicate fragment");
    return gather(in, Inbound::Use::Drop);
  }
  if (message->receive.sink != nullptr) CCOM_TRY(gather(in, Inbound::Use::Deliver));
  in.message = message;
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
  const FragmentHeader header = *in.header;
  if (in.use != Inbound::Use::Drop && crc_ && in.crc != header.payload_crc)
    return broken(in, "a payload with a wrong checksum");
  Message* const message = std::exchange(in.message, nullptr);
  if (message != nullptr && in.gathered != nullptr)
    message->receive.sink->consume(header.offset_bytes, {in.gathered.get(), header.length_bytes});
  if (in.use == Inbound::Use::Keep) CCOM_TRY(keep(in));
  if (in.gathered != nullptr) pool_.give_back(std::move(in.gathered));
  in.use = Inbound::Use::Deliver;
  in.header.reset();
  return message == nullptr ? Status::ok() : deliver(*message, header);
}

// Its payload is where it belongs. What other lines are still bringing of it is no longer needed.
Status Receiver::deliver(Message& message, const FragmentHeader& header) {
  ++moved_;
  ++message.arrived_fragments;
  if (!message.arrived.empty()) message.arrived[header.offset_bytes / grid_] = true;
  for (Inbound& in : inbound_) {
    if (in.message == &message && in.header->offset_bytes == header.offset_bytes)
      CCOM_TRY(gather(in, Inbound::Use::Drop));
  }
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
  early_.clear();
  early_bytes_ = 0;
  for (Inbound& in : inbound_) {
    in.message = nullptr;
    in.gathered.reset();
  }
}

uint64_t Receiver::memory_bytes() const {
  uint64_t bytes = early_bytes_;
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
