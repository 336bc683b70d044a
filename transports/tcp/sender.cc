// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/sender.h"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>
#include <utility>

namespace ccom::tcp {
namespace {

constexpr unsigned kFullPumpsPerCheck = 1024;
// While no message waits for it, the kernel is asked seldom what is acknowledged.
constexpr unsigned kPumpsPerSettling = 64;

std::array<iovec, 2> parts_of(ConstBytes header, ConstBytes payload) {
  return {{{const_cast<std::byte*>(header.data()), header.size()},
           {const_cast<std::byte*>(payload.data()), payload.size()}}};
}

}  // namespace

Sender::Sender(const Route& route, std::span<const std::unique_ptr<Line>> lines, Rails& rails, size_t grid, bool crc)
    : route_(route),
      lines_(lines),
      rails_(rails),
      grid_(grid),
      crc_(crc),
      outbound_(lines.size()),
      abandoned_bytes_(lines.size(), 0),
      flights_(lines.size()) {}

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
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i] == nullptr || lines_[i]->is_lost || !is_hung_up(lines_[i]->fd)) continue;
    if (!rails_.lose_for_good(i, "connection lost"))
      return peer_error(Code::RemoteError, route_, "send to", "the peer has closed the connection");
  }
  return Status::ok();
}

void Sender::clear() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    Outbound& out = outbound_[i];
    if (lines_[i] == nullptr) continue;
    if (rails_.fail_over()) {
      const bool is_lost = lines_[i]->is_lost;
      abandoned_bytes_[i] =
          is_lost ? std::numeric_limits<uint32_t>::max() : lines_[i]->sent_bytes - flights_.promised_end(i);
    } else if (!queue_.empty() && out.last_number >= queue_.front().number) {
      abandoned_bytes_[i] = lines_[i]->sent_bytes - out.last_begin;
    }
    out.is_busy = false;
  }
  flights_.drop_posted();
  queue_.clear();
  first_unpulled_ = 0;
}

bool Sender::wants(size_t i) const {
  if (lines_[i]->is_lost) return false;
  return outbound_[i].is_busy || !outbound_[i].rest.empty() || can_pull(i);
}

// The first fragment of a message uses the first line, see wire.h.
bool Sender::can_pull(size_t i) const {
  if (flights_.has_lost()) return true;
  if (first_unpulled_ == queue_.size()) return false;
  return i == rails_.first() || queue_[first_unpulled_].pulled > 0;
}

bool Sender::awaits_acknowledgements() const {
  return rails_.fail_over() && !queue_.empty() && queue_.front().written == queue_.front().fragments;
}

Fragment Sender::next_fragment() {
  if (flights_.has_lost()) return flights_.take_lost();
  Outgoing& message = queue_[first_unpulled_];
  const ConstBytes whole = message.send.payload;
  const size_t offset = message.pulled * grid_;
  Fragment fragment{.payload = whole.subspan(offset, std::min(grid_, whole.size() - offset)), .message = &message};
  fragment.header = {.envelope = message.send.envelope,
                     .message = message.number,
                     .size_bytes = whole.size(),
                     .offset_bytes = offset,
                     .length_bytes = static_cast<uint32_t>(fragment.payload.size()),
                     .payload_crc = crc_ ? crc32c(fragment.payload, 0) : 0};
  seal(fragment.header);
  if (++message.pulled == message.fragments) ++first_unpulled_;
  return fragment;
}

void Sender::pull(size_t i) {
  Outbound& out = outbound_[i];
  out.fragment = next_fragment();
  out.is_busy = true;
  out.written_bytes = 0;
  const uint64_t number = out.fragment.header.message;
  if (std::exchange(out.last_number, number) != number) out.last_begin = lines_[i]->sent_bytes;
}

Sender::Step Sender::taken(ssize_t sent, size_t wanted) {
  if (sent < 0) {
    write_errno_ = errno;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? Step::Full : Step::Failed;
  }
  return static_cast<size_t>(sent) < wanted ? Step::Full : Step::Written;
}

Sender::Step Sender::write(size_t i) {
  Outbound& out = outbound_[i];
  Fragment& fragment = out.fragment;
  const size_t header_written = std::min(out.written_bytes, sizeof(fragment.header));
  const ConstBytes header = std::as_bytes(std::span(&fragment.header, 1)).subspan(header_written);
  const ConstBytes payload = fragment.payload.subspan(out.written_bytes - header_written);
  auto parts = parts_of(header, payload);
  const ssize_t sent = lines_[i]->send(parts);
  const Step step = taken(sent, header.size() + payload.size());
  if (sent > 0) out.written_bytes += static_cast<size_t>(sent);
  if (step != Step::Written) return step;
  if (fragment.message != nullptr) ++fragment.message->written;
  if (rails_.fail_over()) flights_.add(i, std::move(fragment), lines_[i]->sent_bytes);
  out.is_busy = false;
  return step;
}

Status Sender::care(std::vector<Token>& completed) {
  hand_back_lost();
  settle();
  if (is_idle()) return Status::ok();
  const auto is_gone = [](const auto& line) { return line->is_failed || is_hung_up(line->fd); };
  if (queue_.empty() && std::ranges::all_of(lines_, is_gone)) {
    flights_.clear();
    return Status::ok();
  }
  return pump(false, completed);
}

Sender::Step Sender::write_rest(size_t i) {
  std::vector<std::byte>& rest = outbound_[i].rest;
  auto parts = parts_of(rest, {});
  const ssize_t sent = lines_[i]->send(parts);
  const Step step = taken(sent, rest.size());
  if (sent > 0) rest.erase(rest.begin(), rest.begin() + sent);
  return step;
}

// What is left of the fragment being written is kept: if the line comes back, the receiver is to find its end.
void Sender::hand_back_lost() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    Outbound& out = outbound_[i];
    if (!lines_[i]->is_lost || (!out.is_busy && !flights_.has_on(i))) continue;
    for (size_t each = 0; each < lines_.size(); ++each) (void)settle_line(each);  // says nothing about afterwards
    std::optional<Fragment> partial;
    if (std::exchange(out.is_busy, false)) {
      const ConstBytes header = std::as_bytes(std::span(&out.fragment.header, 1));
      out.rest.assign(header.begin(), header.end());
      out.rest.insert(out.rest.end(), out.fragment.payload.begin(), out.fragment.payload.end());
      out.rest.erase(out.rest.begin(), out.rest.begin() + static_cast<ptrdiff_t>(out.written_bytes));
      partial = std::move(out.fragment);
    }
    flights_.lose(i, std::move(partial));
  }
}

Status Sender::lose(size_t i) {
  if (rails_.lose_for_good(i, std::generic_category().message(write_errno_))) return Status::ok();
  return peer_error(Code::RemoteError, route_, "send to", "connection lost", write_errno_);
}

// One fragment per line and round, so that writable lines share a message evenly.
Status Sender::pump_lines(bool ask_first, bool& is_full) {
  for (size_t moved_bytes = 0; moved_bytes < kPumpBytes;) {
    const size_t moved_before = moved_bytes;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i]->is_lost || (ask_first && lines_[i]->write_armed)) continue;
      const bool has_rest = !outbound_[i].rest.empty();
      if (!has_rest && !outbound_[i].is_busy) {
        if (!can_pull(i)) continue;
        pull(i);
      }
      const size_t length = has_rest ? outbound_[i].rest.size() : outbound_[i].fragment.payload.size();
      const Step step = has_rest ? write_rest(i) : write(i);
      if (step == Step::Failed) {
        CCOM_TRY(lose(i));
        hand_back_lost();
      }
      if (step == Step::Written) moved_bytes += sizeof(FragmentHeader) + length;
      if (step == Step::Full && ask_first) arm(*lines_[i], Direction::Write);
      is_full |= step == Step::Full;
    }
    if (moved_bytes == moved_before) break;
  }
  return Status::ok();
}

Status Sender::pump(bool ask_first, std::vector<Token>& completed) {
  if (rails_.fail_over()) hand_back_lost();
  bool is_full = false;
  CCOM_TRY(pump_lines(ask_first, is_full));
  if (awaits_acknowledgements() || ++pumps_ % kPumpsPerSettling == 0) settle();
  retire(completed);
  if (is_full && ++full_pumps_ % kFullPumpsPerCheck == 0) return check_hang_up();
  return Status::ok();
}

bool Sender::settle_line(size_t i) {
  return flights_.has_on(i) && flights_.settle(i, lines_[i]->sent_bytes - unsettled_bytes(lines_[i]->fd));
}

void Sender::settle() {
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (settle_line(i) && !lines_[i]->is_lost) rails_.confirm();
  }
}

// The end of a message is acknowledged late where the receiver's kernel has nothing to answer to: that much is copied.
void Sender::retire(std::vector<Token>& completed) {
  while (!queue_.empty() && queue_.front().written == queue_.front().fragments) {
    Outgoing& front = queue_.front();
    if (rails_.fail_over()) {
      if (front.fragments - front.settled <= lines_.size()) flights_.keep(front);
      if (front.settled < front.fragments) return;
    }
    completed.push_back(front.send.token);
    queue_.pop_front();
    --first_unpulled_;
  }
}

}  // namespace ccom::tcp
