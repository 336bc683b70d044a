// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

namespace ccom::tcp {
namespace {

// post_send() writes small messages itself, which saves one iteration of the caller's progress loop; larger ones would
// block it for too long.
constexpr size_t kWriteAtOnceBytes = size_t{64} << 10;

}  // namespace

TcpChannel::TcpChannel(Route route, const Shape& shape, Shared& shared)
    : route_(std::move(route)),
      shared_(shared),
      lines_(shape.streams),
      rails_(route_, lines_, shape.rail_limit),
      sender_(route_, lines_, rails_, grid_bytes(static_cast<int>(shape.streams)), shape.crc),
      receiver_(route_, lines_, rails_, grid_bytes(static_cast<int>(shape.streams)), shape.crc, shared.pool) {}

Status TcpChannel::post_send(const Send& send) {
  const SharedLock lock(shared_);
  CCOM_TRY(Status(shared_.failure));
  const bool was_idle = !sender_.has_posted();
  Status status = sender_.post(send);
  if (status.is_ok() && was_idle && is_connected() && send.payload.size() <= kWriteAtOnceBytes) {
    status = sender_.pump(false, shared_.completed);
  }
  if (!status.is_ok()) shared_.failure = status;
  activate();
  return status;
}

Status TcpChannel::post_receive(const Receive& receive) {
  const SharedLock lock(shared_);
  CCOM_TRY(Status(shared_.failure));
  if (receive.size_bytes > 0 && (receive.target == nullptr) == (receive.sink == nullptr)) {
    return error(Code::InvalidArgument, "receive of %zu bytes from rank %d: needs either a target or a sink",
                 receive.size_bytes, route_.peer)
        .with_peers({route_.peer});
  }
  receiver_.post(receive);
  shared_.may_progress |= receiver_.has_read_ahead();
  activate();
  return Status::ok();
}

void TcpChannel::activate() {
  if (std::exchange(is_active_, true)) return;
  shared_.active.push_back(this);
}

Status TcpChannel::pump(bool ask_first, Events& events) {
  if (!is_connected()) return Status::ok();
  if (!sender_.is_idle()) CCOM_TRY(sender_.pump(ask_first, events.completed));
  return receiver_.is_idle() ? Status::ok() : receiver_.pump(ask_first, events);
}

Status TcpChannel::arm_all() {
  if (!is_connected()) return Status::ok();
  bool is_writing = false;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (!receiver_.is_idle() && receiver_.wants(i) && !lines_[i]->input_ended) {
      shared_.may_progress |= lines_[i]->holds_input();
      arm(*lines_[i], Direction::Read);
    }
    if (!sender_.is_idle() && sender_.wants(i)) arm(*lines_[i], Direction::Write);
    is_writing |= sender_.wants(i);
  }
  return is_writing ? sender_.check_hang_up() : Status::ok();
}

uint64_t TcpChannel::memory_bytes() const {
  uint64_t bytes = receiver_.memory_bytes();
  for (const auto& line : lines_) bytes += line != nullptr && line->tls != nullptr ? Tls::memory_bytes() : 0;
  return bytes;
}

void TcpChannel::clear() {
  sender_.clear();
  receiver_.clear();
}

TcpChannel::Rest TcpChannel::end_output(size_t i) {
  ::shutdown(lines_[i]->fd, SHUT_WR);
  return {.fd = lines_[i]->fd, .unpromised_bytes = sender_.abandoned_bytes(i) + 1};
}

}  // namespace ccom::tcp
