// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/async_line.h"

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

namespace ccom::tcp {
namespace {

constexpr auto kProtocolError = boost::system::errc::protocol_error;

// The line may be closed before a queued handler runs.
void finish(Line& line, Handler handler, const ErrorCode& outcome) {
  asio::post(line.socket->get_executor(), [&line, handler = std::move(handler), outcome] {
    handler(line.socket->is_open() ? outcome : ErrorCode(asio::error::operation_aborted));
  });
}

// Calls `again` when the line is ready, unless it was closed: its descriptor may have been reused.
template <typename Again>
void when_ready(Line& line, Socket::wait_type direction, Handler handler, Again again) {
  line.socket->async_wait(direction, [&line, handler = std::move(handler), again](const ErrorCode& failure) {
    if (failure) return handler(failure);
    if (!line.socket->is_open()) return handler(asio::error::operation_aborted);
    again(line, handler);
  });
}

// Result of a transfer that moved `moved` bytes, or none for the reason in errno.
template <typename Again>
void go_on(Line& line, ssize_t moved, Socket::wait_type direction, Handler handler, Again again) {
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return when_ready(line, direction, std::move(handler), again);
  if (moved > 0) return again(line, std::move(handler));
  const ErrorCode failure =
      moved == 0 ? ErrorCode(asio::error::eof) : ErrorCode(errno, boost::system::system_category());
  finish(line, std::move(handler), failure);
}

}  // namespace

void async_secure(Line& line, Handler handler) {
  const Tls::Step step = line.tls == nullptr ? Tls::Step::Done : line.tls->handshake();
  if (step == Tls::Step::Done) return finish(line, std::move(handler), {});
  if (step == Tls::Step::Failed) return finish(line, std::move(handler), make_error_code(kProtocolError));
  when_ready(line, step == Tls::Step::NeedsRead ? Socket::wait_read : Socket::wait_write, std::move(handler),
             async_secure);
}

void async_read(Line& line, Bytes whole, Handler handler) {
  if (whole.empty()) return finish(line, std::move(handler), {});
  std::array<iovec, 1> part{{{whole.data(), whole.size()}}};
  const ssize_t got = line.receive(part);
  go_on(line, got, Socket::wait_read, std::move(handler),
        [rest = whole.subspan(got > 0 ? static_cast<size_t>(got) : 0)](Line& ready, Handler next) {
          async_read(ready, rest, std::move(next));
        });
}

void async_write(Line& line, ConstBytes whole, Handler handler) {
  if (whole.empty()) return finish(line, std::move(handler), {});
  std::array<iovec, 1> part{{{const_cast<std::byte*>(whole.data()), whole.size()}}};
  const ssize_t sent = line.send(part);
  go_on(line, sent, Socket::wait_write, std::move(handler),
        [rest = whole.subspan(sent > 0 ? static_cast<size_t>(sent) : 0)](Line& ready, Handler next) {
          async_write(ready, rest, std::move(next));
        });
}

}  // namespace ccom::tcp
