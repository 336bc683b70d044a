// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/connect_handshakes.h"

#include <utility>

namespace ccom::tcp {
namespace {

// How long an acceptor waits for the Hello, and for a Confirm; a connector may have lost the processor meanwhile, and
// considers itself admitted once it has sent the Confirm.
constexpr std::chrono::milliseconds kHelloTimeout{2000}, kConfirmTimeout{20'000};
// How long a connector waits for its peer's kernel, and for its peer, before it tries another connection.
constexpr std::chrono::milliseconds kKernelTimeout{2000}, kAnswerTimeout{20'000};
constexpr std::chrono::milliseconds kLongestPause{100};

}  // namespace

ConnectionSetup::AcceptHandshake::AcceptHandshake(ConnectionSetup& setup, Socket socket)
    : setup_(setup),
      line_(std::make_unique<Line>(std::move(socket))),
      timer_(setup.io_),
      handshake_(Handshake::acceptor(handshake_identity(setup.self_), &setup.answered_)) {}

void ConnectionSetup::AcceptHandshake::start() {
  set_options(*line_->socket, setup_.options_);
  watch(kHelloTimeout);
  if (setup_.tls_ != nullptr && !begin_tls()) return refuse();
  async_secure(*line_, then(&AcceptHandshake::on_secure));
}

// A ClientHello holds an HMAC, so one that passes the first step was made with the key. Who repeats it has recorded it:
// it is not worth the memory of TLS, which would be taken until the time for the rest has passed.
bool ConnectionSetup::AcceptHandshake::begin_tls() {
  const std::optional<HelloNumber> number = peek_hello(line_->fd);
  if (!number || setup_.answered_.contains(*number) || !setup_.secure(*line_, Tls::Side::Accepts)) return false;
  if (line_->tls->handshake() == Tls::Step::Failed) return false;
  setup_.answered_.insert(*number);
  return true;
}

void ConnectionSetup::AcceptHandshake::close() {
  if (line_ != nullptr) line_->socket->close();
  timer_.cancel();
}

Handler ConnectionSetup::AcceptHandshake::then(void (AcceptHandshake::*next)()) {
  return [self = shared_from_this(), next](const ErrorCode& failure) {
    if (failure) return self->refuse();
    (self.get()->*next)();
  };
}

// If this rank itself was delayed, the bytes may have arrived although the deadline has passed: check once more.
void ConnectionSetup::AcceptHandshake::watch(std::chrono::milliseconds timeout) {
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& failure) {
    const bool is_replaced = self->timer_.expiry() > Clock::now();
    if (failure || is_replaced || self->line_ == nullptr) return;
    ErrorCode ignored;
    const bool has_bytes = self->line_->socket->available(ignored) > 0;
    if (std::exchange(self->is_late_, true) || !has_bytes) return self->refuse();
    self->watch(std::chrono::milliseconds(100));
  });
}

void ConnectionSetup::AcceptHandshake::refuse() {
  if (!line_->socket->is_open()) return;
  close();
  ++setup_.refused_;
  setup_.forget(shared_from_this());
}

void ConnectionSetup::AcceptHandshake::on_secure() {
  async_read(*line_, message_.writable_bytes(), then(&AcceptHandshake::on_hello));
}

void ConnectionSetup::AcceptHandshake::on_hello() {
  if (!handshake_.receive(message_)) return refuse();
  const Rank peer = handshake_.peer();
  Expected* const expected = setup_.find(peer);
  if (expected == nullptr || peer < setup_.self_.rank) return refuse();
  const auto theirs = message_.terms_as<LineTerms>();
  id_ = {peer, theirs.channel, theirs.stream};
  const LineTerms mine = terms_of(setup_.self_, id_, expected->peer.channels);
  // A peer with different settings is answered as well, so that it can report the difference too.
  settings_ = compare_settings(mine, theirs, peer);
  if (settings_.is_ok() && !setup_.is_missing(id_)) return refuse();
  watch(kConfirmTimeout);
  message_ = handshake_.next(mine);
  async_write(*line_, message_.writable_bytes(), then(&AcceptHandshake::on_answered));
}

void ConnectionSetup::AcceptHandshake::on_answered() {
  if (!settings_.is_ok()) setup_.fail(settings_);
  async_read(*line_, message_.writable_bytes(), then(&AcceptHandshake::on_confirm));
}

void ConnectionSetup::AcceptHandshake::on_confirm() {
  if (!handshake_.receive(message_) || !setup_.is_missing(id_)) return refuse();
  timer_.cancel();
  setup_.admit(id_, std::move(line_));
  setup_.forget(shared_from_this());
}

ConnectionSetup::ConnectAttempt::ConnectAttempt(ConnectionSetup& setup, LineId id, Expected& expected, Path path)
    : setup_(setup),
      id_(id),
      expected_(expected),
      path_(std::move(path)),
      timer_(setup.io_),
      handshake_(Handshake::connector(handshake_identity(setup.self_), id.peer)) {}

Handler ConnectionSetup::ConnectAttempt::then(void (ConnectAttempt::*next)(), const char* action) {
  return [self = shared_from_this(), next, action](const ErrorCode& failure) {
    if (self->is_closed_) return;
    if (!self->late_.empty()) return self->retry(std::exchange(self->late_, {}));
    if (!failure) return (self.get()->*next)();
    const bool has_ended = failure == asio::error::eof || failure == asio::error::connection_reset ||
                           failure == boost::system::errc::protocol_error;
    self->retry(std::string(action) + ": " +
                (has_ended ? "connection closed (different key or communicator?)" : failure.message()));
  };
}

void ConnectionSetup::ConnectAttempt::start() {
  Socket socket(setup_.io_);
  const ErrorCode failure = open_from(socket, path_.from);
  if (failure) return retry("socket: " + failure.message());
  line_ = std::make_unique<Line>(std::move(socket));
  handshake_ = Handshake::connector(handshake_identity(setup_.self_), id_.peer);
  watch(Deadline::after(kAnswerTimeout));
  line_->socket->async_connect(path_.to, then(&ConnectAttempt::on_connected, "connect"));
}

// The kernel repeats a lost SYN or Hello at intervals that double; a new connection begins with short ones. What the
// peer's kernel has acknowledged waits there for a peer that has not called connect() yet. After the Confirm the peer
// may have admitted this connection, and admits no other.
void ConnectionSetup::ConnectAttempt::watch(Deadline answer) {
  timer_.expires_after(kKernelTimeout);
  timer_.async_wait([self = shared_from_this(), answer](const ErrorCode& failure) {
    if (failure || self->is_closed_ || self->line_ == nullptr || self->handshake_.is_complete()) return;
    const bool is_taken = self->is_connected_ && unacknowledged_bytes(self->line_->fd) == 0;
    if (is_taken && !answer.passed()) return self->watch(answer);
    self->late_ = !self->is_connected_ ? "connect: no answer"
                  : is_taken           ? "hello: no answer"
                                       : "hello: not acknowledged";
    // The step under way ends, and retries. Nothing of this connection is to reach the peer any more.
    reset_on_close(self->line_->fd);
    self->line_->socket->close();
  });
}

void ConnectionSetup::ConnectAttempt::close() {
  is_closed_ = true;
  if (line_ != nullptr) line_->socket->close();
  timer_.cancel();
}

void ConnectionSetup::ConnectAttempt::retry(const std::string& reason) {
  // "Connection refused" from a peer that has given up is less informative than its earlier answer.
  if (is_connected_ || !was_connected_) expected_.reason = reason;
  if (is_connected_) reached_ = Clock::now();
  was_connected_ |= std::exchange(is_connected_, false);
  line_.reset();
  timer_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  timer_.async_wait([self = shared_from_this()](const ErrorCode& failure) {
    if (!failure && !self->is_closed_) self->start();
  });
}

// The other options follow when the peer has answered. A keepalive probe before the Hello would be fatal: a listener
// that defers connections until data arrives answers it with a newer timestamp than that of its SYN-ACK, and Linux
// from 6.15 on then drops all that echoes it (TcpExtTSEcrRejected).
void ConnectionSetup::ConnectAttempt::on_connected() {
  is_connected_ = true;
  disable_nagle(line_->fd);
  if (!setup_.secure(*line_, Tls::Side::Connects)) return retry("TLS: out of memory");
  async_secure(*line_, then(&ConnectAttempt::on_secure, "TLS"));
}

void ConnectionSetup::ConnectAttempt::on_secure() {
  message_ = handshake_.next(terms_of(setup_.self_, id_, expected_.peer.channels));
  async_write(*line_, message_.writable_bytes(), then(&ConnectAttempt::on_hello_sent, "hello"));
}

void ConnectionSetup::ConnectAttempt::on_hello_sent() {
  async_read(*line_, message_.writable_bytes(), then(&ConnectAttempt::on_answer, "hello"));
}

void ConnectionSetup::ConnectAttempt::on_answer() {
  if (!handshake_.receive(message_)) return retry("hello: authentication failed");
  set_options(*line_->socket, setup_.options_);
  const LineTerms mine = terms_of(setup_.self_, id_, expected_.peer.channels);
  Status settings = compare_settings(mine, message_.terms_as<LineTerms>(), id_.peer);
  if (!settings.is_ok()) return setup_.fail(std::move(settings));
  message_ = handshake_.next();
  async_write(*line_, message_.writable_bytes(), then(&ConnectAttempt::on_authenticated, "hello"));
}

void ConnectionSetup::ConnectAttempt::on_authenticated() { setup_.admit(id_, std::move(line_)); }

}  // namespace ccom::tcp
