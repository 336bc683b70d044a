// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/sender.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ccom::tcp {
namespace {

constexpr unsigned kFullPumpsPerCheck = 1024;

}  // namespace

Sender::Sender(const Route& route, std::span<const std::unique_ptr<Line>> lines, size_t grid, bool crc)
    : route_(route),
      lines_(lines),
      grid_(grid),
      crc_(crc),
      outbound_(lines.size()),
      abandoned_bytes_(lines.size(), 0) {}

Status Sender::post(const Send& send) {
  // In a ping-pong the peer was heard from just now. Otherwise checking the line is cheap compared with the send, and
  // detects a closed connection before data is written to it.
  if (Line* const opening = lines_.front().get(); opening != nullptr) {
    if (!opening->has_received) CCOM_TRY(check_hang_up());
    opening->has_received = false;
  }
  queue_.push_back({.send = send, .number = next_number_++, .fragments = fragments_of(send.payload.size(), grid_)});
  return Status::ok();
}

Status Sender::check_hang_up() {
  for (const auto& line : lines_) {
    if (line != nullptr && is_hung_up(line->fd))
      return peer_error(Code::RemoteError, route_, "send to", "the peer has closed the connection");
  }
  return Status::ok();
}

void Sender::clear() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    const Outbound& out = outbound_[i];
    if (lines_[i] != nullptr && !queue_.empty() && out.last_number >= queue_.front().number)
      abandoned_bytes_[i] = lines_[i]->sent_bytes - out.last_begin;
    outbound_[i].message = nullptr;
  }
  queue_.clear();
  first_unpulled_ = 0;
}

// The first fragment of a message uses line 0, see wire.h.
bool Sender::can_pull(size_t i) const {
  if (first_unpulled_ == queue_.size()) return false;
  return i == 0 || queue_[first_unpulled_].pulled_fragments > 0;
}

void Sender::pull(size_t i) {
  Message& message = queue_[first_unpulled_];
  const ConstBytes whole = message.send.payload;
  const size_t offset = message.pulled_fragments * grid_;
  Outbound& out = outbound_[i];
  out.message = &message;
  out.payload = whole.subspan(offset, std::min(grid_, whole.size() - offset));
  out.header = {.envelope = message.send.envelope,
                .message = message.number,
                .size_bytes = whole.size(),
                .offset_bytes = offset,
                .length_bytes = static_cast<uint32_t>(out.payload.size()),
                .payload_crc = crc_ ? crc32c(out.payload, 0) : 0};
  seal(out.header);
  out.written_bytes = 0;
  if (std::exchange(out.last_number, message.number) != message.number) out.last_begin = lines_[i]->sent_bytes;
  if (++message.pulled_fragments == message.fragments) ++first_unpulled_;
}

Sender::Step Sender::write(size_t i) {
  Outbound& out = outbound_[i];
  const size_t header_written = std::min(out.written_bytes, sizeof(out.header));
  const ConstBytes header = std::as_bytes(std::span(&out.header, 1)).subspan(header_written);
  const ConstBytes payload = out.payload.subspan(out.written_bytes - header_written);
  std::array<iovec, 2> parts{{{const_cast<std::byte*>(header.data()), header.size()},
                              {const_cast<std::byte*>(payload.data()), payload.size()}}};
  const ssize_t sent = lines_[i]->send(parts);
  if (sent < 0) {
    write_errno_ = errno;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? Step::Full : Step::Failed;
  }
  out.written_bytes += static_cast<size_t>(sent);
  if (out.written_bytes < sizeof(out.header) + out.payload.size()) return Step::Full;
  ++out.message->written_fragments;
  out.message = nullptr;
  return Step::Written;
}

// One fragment per line and round, so that writable lines share a message evenly.
Status Sender::pump(bool ask_first, std::vector<Token>& completed) {
  bool is_full = false;
  for (size_t moved_bytes = 0; moved_bytes < kPumpBytes;) {
    const size_t moved_before = moved_bytes;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (ask_first && lines_[i]->write_armed) continue;
      if (outbound_[i].message == nullptr) {
        if (!can_pull(i)) continue;
        pull(i);
      }
      const size_t length = outbound_[i].payload.size();
      const Step step = write(i);
      if (step == Step::Failed) {
        return peer_error(Code::RemoteError, route_, "send to", "connection lost", write_errno_);
      }
      if (step == Step::Written) moved_bytes += sizeof(FragmentHeader) + length;
      if (step == Step::Full && ask_first) arm(*lines_[i], Direction::Write);
      is_full |= step == Step::Full;
    }
    if (moved_bytes == moved_before) break;
  }
  retire(completed);
  if (is_full && ++full_pumps_ % kFullPumpsPerCheck == 0) return check_hang_up();
  return Status::ok();
}

void Sender::retire(std::vector<Token>& completed) {
  while (!queue_.empty() && queue_.front().written_fragments == queue_.front().fragments) {
    completed.push_back(queue_.front().send.token);
    queue_.pop_front();
    --first_unpulled_;
  }
}

}  // namespace ccom::tcp
