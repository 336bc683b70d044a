// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ccom {
namespace {

constexpr int64_t kHelloMs = 2000;
constexpr int64_t kLongestRetryMs = 50;

struct ControlTerms {
  uint64_t use = 0;
};

// The number is no secret, but says as little of the keys as they of one another.
ConnectionTerms terms_of(const Handshake& handshake, bool is_connector) {
  const Secret session = handshake.session();
  const Secret up = session.derive("connector to acceptor"), down = session.derive("acceptor to connector");
  ConnectionTerms terms{.send = is_connector ? up : down, .receive = is_connector ? down : up};
  const Secret number = session.derive("number");
  std::memcpy(&terms.number, number.bytes().data(), sizeof terms.number);
  return terms;
}

}  // namespace

ControlHandshake::ControlHandshake(Handshake handshake, ControlSocket socket, uint64_t use, bool is_connector)
    : socket_(std::move(socket)),
      handshake_(std::move(handshake)),
      use_(use),
      is_connector_(is_connector),
      is_connected_(!is_connector),
      deadline_(Deadline::after_ms(kHelloMs)) {}

ControlHandshake ControlHandshake::connector(const ControlIdentity& identity, ControlSocket socket, int peer,
                                             uint64_t use) {
  return {Handshake::connector(identity.handshake(), peer), std::move(socket), use, true};
}

ControlHandshake ControlHandshake::acceptor(const ControlIdentity& identity, ControlSocket socket,
                                            HelloNumbers* answered) {
  return {Handshake::acceptor(identity.handshake(), answered), std::move(socket), 0, false};
}

// A new socket's buffer holds a whole handshake, so a short write means that the connection is broken.
bool ControlHandshake::send_next() {
  const HandshakeMessage message = handshake_.next(ControlTerms{use_});
  return socket_.send(message.bytes()) == static_cast<ssize_t>(sizeof message);
}

pollfd ControlHandshake::awaited() const {
  return {.fd = socket_.fd(), .events = static_cast<short>(is_connected_ ? POLLIN : POLLOUT), .revents = 0};
}

// Until it is connected or has failed, nothing is known.
std::string ControlHandshake::connect() {
  pollfd event = awaited();
  if (is_connected_ || ::poll(&event, 1, 0) != 1) return {};
  if (const int failure = connect_outcome(socket_.descriptor()); failure != 0) return std::strerror(failure);
  is_connected_ = true;
  return {};
}

std::string ControlHandshake::advance() {
  if (std::string failure = connect(); !failure.empty() || !is_connected_) return failure;
  if (!is_secured_) {
    const Tls::Step step = socket_.secure();
    if (step == Tls::Step::NeedsRead) return {};
    if (step != Tls::Step::Done) return "TLS handshake failed: it does not hold the communicator's key";
    is_secured_ = true;
  }
  while (!handshake_.is_complete()) {
    if (handshake_.is_our_turn()) {
      if (handshake_.step() == HandshakeStep::Welcome) return {};
      if (!send_next()) return "connection stalled during the handshake";
      continue;
    }
    const Bytes missing = input_.writable_bytes().subspan(input_bytes_);
    const ssize_t size = socket_.receive(missing);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size < 0) return std::strerror(errno);
    if (size == 0) return "connection closed during the handshake";
    input_bytes_ += static_cast<size_t>(size);
    if (static_cast<size_t>(size) < missing.size()) continue;
    input_bytes_ = 0;
    const bool is_hello = handshake_.step() == HandshakeStep::Hello;
    if (!handshake_.receive(input_)) return "authentication failed: it does not hold the communicator's key";
    if (is_hello) use_ = input_.terms_as<ControlTerms>().use;
  }
  return {};
}

std::shared_ptr<ControlConnection> ControlHandshake::connection() {
  return std::make_shared<ControlConnection>(std::move(socket_), terms_of(handshake_, is_connector_));
}

// ---- arriving

Result<std::unique_ptr<ControlAcceptor>> ControlAcceptor::create(const ControlIdentity& identity) {
  auto arriving = UnprovedConnections::create(identity.tls != nullptr ? kClientHelloGreeting : kHandshakeGreeting);
  if (!arriving) return std::move(arriving).error().in("control connections");
  return std::unique_ptr<ControlAcceptor>(new ControlAcceptor(identity, *std::move(arriving)));
}

void ControlAcceptor::add_awaited(std::vector<pollfd>& events) const {
  for (const auto& one : pending_) events.push_back(one->awaited());
  events.push_back({.fd = arriving_.fd(), .events = POLLIN, .revents = 0});
}

void ControlAcceptor::step(const IsExpected& is_expected, const Attach& attach) {
  accept_all();
  std::erase_if(pending_, [&](const auto& one) { return is_settled(*one, is_expected, attach); });
}

void ControlAcceptor::accept_all() {
  for (;;) {
    Descriptor socket = arriving_.next();
    if (!socket.is_open()) return;
    disable_nagle(socket.get());
    if (identity_.tls != nullptr) {
      const std::optional<HelloNumber> hello = peek_hello(socket.get());
      if (hello && answered_.contains(*hello)) continue;  // a recording
      auto connection = ControlSocket::make(std::move(socket), identity_.tls, Tls::Side::Accepts);
      if (!connection) continue;
      auto one =
          std::make_unique<ControlHandshake>(ControlHandshake::acceptor(identity_, *std::move(connection), &answered_));
      if (!one->advance().empty()) continue;
      if (hello) answered_.insert(*hello);  // its maker holds the key
      pending_.push_back(std::move(one));
    } else {
      pending_.push_back(std::make_unique<ControlHandshake>(
          ControlHandshake::acceptor(identity_, ControlSocket(std::move(socket)), &answered_)));
    }
  }
}

// Continues its handshake; whether it is admitted, or to be dropped.
bool ControlAcceptor::is_settled(ControlHandshake& one, const IsExpected& is_expected, const Attach& attach) {
  if (!one.advance().empty()) return true;
  if (!one.is_at_welcome()) return one.is_late();
  if (is_expected(one.peer(), one.use()) && one.welcome()) attach(one.peer(), one.use(), one.connection());
  return true;
}

// ---- made

void ControlConnector::add_awaited(std::vector<pollfd>& events) const {
  if (pending_) events.push_back(pending_->awaited());
}

void ControlConnector::start(const ControlIdentity& identity) {
  auto socket = start_connect(address_);
  if (!socket) return fail(socket.error().message());
  auto connection = ControlSocket::make(*std::move(socket), identity.tls, Tls::Side::Connects);
  if (!connection) return fail(connection.error().message());
  pending_.emplace(ControlHandshake::connector(identity, *std::move(connection), peer_, use_));
}

void ControlConnector::fail(std::string why) {
  last_failure_ = std::move(why);
  pending_.reset();
  next_try_ = Deadline::after_ms(retry_ms_);
  retry_ms_ = std::min(2 * retry_ms_, kLongestRetryMs);
}

std::shared_ptr<ControlConnection> ControlConnector::step(const ControlIdentity& identity) {
  if (!pending_ && next_try_.passed()) start(identity);
  if (!pending_) return nullptr;
  const bool was_connected = pending_->awaited().events == POLLIN;
  std::string failure = pending_->advance();
  if (failure.empty() && pending_->is_complete()) return pending_->connection();
  // Once it has the Confirm, the peer may have admitted this connection, and admits no other: TCP delivers its Welcome.
  if (failure.empty() && !pending_->is_at_welcome() && pending_->is_late()) {
    refusals_ = 0;
    fail("no answer within two seconds");
  } else if (!failure.empty()) {
    const bool is_refused = failure == std::strerror(ECONNREFUSED) || was_connected;
    refusals_ = is_refused ? refusals_ + 1 : 0;
    fail(std::move(failure));
  }
  return nullptr;
}

}  // namespace ccom
