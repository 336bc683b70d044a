// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/connection_setup.h"

#include "base/log.h"
#include "transports/tcp/connect_handshakes.h"
#include "transports/tcp/peer_address.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <exception>
#include <utility>

namespace ccom::tcp {
namespace {

// Each may have buffers until it has failed.
constexpr int kAcceptsAtOnce = 8;
constexpr std::chrono::milliseconds kLookInterval{50};  // at connections that wait for their time to end
// After an error, so that peers learn the reason rather than a connection failure.
constexpr std::chrono::milliseconds kGrace{200};
constexpr size_t kMaxNamed = 8;

}  // namespace

ConnectionSetup::ConnectionSetup(const Context& context, Admit admit)
    : io_(context.io),
      self_(context.self),
      tls_(context.tls),
      options_(context.options),
      keeps_ports_(context.keeps_ports),
      rail_limit_(context.rail_limit),
      admit_(std::move(admit)),
      arrivals_(context.io) {
  for (Descriptor& listener : context.listeners) {
    local_interfaces_.push_back({.listener = listener, .address = local_endpoint(listener.get()).address()});
  }
}

ConnectionSetup::~ConnectionSetup() {
  try {
    close();
  } catch (const std::exception& thrown) {
    log(LogLevel::Error, "rank %d: close pending connections: %s", self_.rank, thrown.what());
  }
}

Status ConnectionSetup::add(const Peer& peer, int channel) {
  const auto lines = static_cast<size_t>(peer.channels) * static_cast<size_t>(self_.streams),
             streams = static_cast<size_t>(self_.streams);
  Expected& expected =
      expected_.try_emplace(peer.rank, Expected{.peer = peer, .is_missing = std::vector<bool>(lines)}).first->second;
  for (size_t i = 0; i < streams; ++i) expected.is_missing[static_cast<size_t>(channel) * streams + i] = true;
  expected.missing += streams;
  missing_ += streams;
  if (peer.rank < self_.rank) return start_attempts(expected, channel);
  return keeps_ports_ ? listen() : Status::ok();
}

Status ConnectionSetup::step() {
  if (next_look_.passed()) {
    accept_some();
    next_look_ = Deadline::after(kLookInterval);
    if (rail_limit_.count() > 0) CCOM_TRY(lose_dead_rails());
  }
  io_.poll();
  return failure_.is_ok() ? Status::ok() : Status(failure_).in("connect rank " + std::to_string(self_.rank));
}

Status ConnectionSetup::run(const WaitLimit& limit) {
  const auto start = Clock::now();
  CCOM_TRY(listen());
  run_until(limit);
  close();
  if (!failure_.is_ok()) return std::move(failure_).in("connect rank " + std::to_string(self_.rank));
  return missing_ == 0 ? Status::ok() : describe_missing(Clock::now() - start);
}

// Round-robin over the interfaces.
Status ConnectionSetup::start_attempts(Expected& expected, int channel) {
  CCOM_TRY_ASSIGN(const PeerAddress address, parse_peer_address(expected.peer.address));
  for (int stream = 0; stream < self_.streams; ++stream) {
    const size_t interface = static_cast<size_t>(stream) % local_interfaces_.size();
    const ConnectAttempt::Path path{.from = local_interfaces_[interface].address, .to = address.endpoints[interface]};
    const LineId id{expected.peer.rank, channel, stream};
    attempts_.push_back(std::make_shared<ConnectAttempt>(*this, id, expected, path));
    attempts_.back()->start();
  }
  return Status::ok();
}

void ConnectionSetup::run_until(const WaitLimit& limit) {
  const auto next_look = [&limit] { return limit.next_look().earlier(Deadline::after(kLookInterval)); };
  Deadline look = next_look();
  std::optional<Deadline> grace;
  while (missing_ > 0 && !(grace && grace->passed())) {
    io_.run_one_for((grace ? look.earlier(*grace) : look).left());
    if (look.passed()) {
      if (limit.is_reached()) return;
      accept_some();
      look = next_look();
    }
    if (!failure_.is_ok() && !grace) grace = Deadline::after(kGrace);
  }
}

// Pending handlers run once more, find their sockets closed, and release them.
void ConnectionSetup::close() {
  if (arrivals_.is_open()) arrivals_.release();  // unproved_ owns it
  if (unproved_) unproved_->remove_listeners();
  stop_listening();
  for (const auto& handshake : accepted_) handshake->close();
  for (const auto& attempt : attempts_) attempt->close();
  io_.poll();
}

// A listening socket that is shut down keeps its port, and may listen again. With SO_REUSEADDR connections of the port
// do not hinder that; without it nobody else gets the port between.
void ConnectionSetup::stop_listening() {
  for (LocalInterface& interface : local_interfaces_) {
    if (!keeps_ports_) {
      interface.listener = Descriptor();
    } else if (unproved_) {
      ::shutdown(interface.listener.get(), SHUT_RD);
      share_port(interface.listener.get(), false);
    }
  }
}

Status ConnectionSetup::listen() {
  if (unproved_) return Status::ok();
  for (const LocalInterface& interface : local_interfaces_) {
    if (!keeps_ports_) continue;
    share_port(interface.listener.get(), true);
    if (::listen(interface.listener.get(), SOMAXCONN) != 0)
      return system_error(errno, "listen at %s", interface.address.to_string().c_str());
  }
  auto unproved = UnprovedConnections::create(tls_ != nullptr ? kClientHelloGreeting : kHandshakeGreeting);
  if (!unproved) return std::move(unproved).error().in("accept connections");
  unproved_.emplace(*std::move(unproved));
  for (LocalInterface& interface : local_interfaces_) CCOM_TRY(unproved_->add_listener(interface.listener.get()));
  arrivals_.assign(unproved_->fd());
  accept_some();
  return Status::ok();
}

void ConnectionSetup::accept_when_ready() {
  if (!arrivals_.is_open() || std::exchange(is_armed_, true)) return;
  arrivals_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const ErrorCode& failure) {
    is_armed_ = false;
    if (!failure) accept_some();
  });
}

// Those that fail are gone before the next ones begin.
void ConnectionSetup::accept_some() {
  if (!arrivals_.is_open()) return;
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    Descriptor accepted = unproved_->next();
    if (!accepted.is_open()) break;
    Socket socket(io_);
    if (adopt(socket, std::move(accepted))) continue;
    accepted_.push_back(std::make_shared<AcceptHandshake>(*this, std::move(socket)));
    accepted_.back()->start();
  }
  if (unproved_->wait_ms() == 0) return asio::post(io_, [this] { accept_some(); });
  accept_when_ready();
}

ConnectionSetup::Expected* ConnectionSetup::find(Rank peer) {
  const auto found = expected_.find(peer);
  return found == expected_.end() ? nullptr : &found->second;
}

bool ConnectionSetup::is_missing(const LineId& id) {
  const Expected* const expected = find(id.peer);
  if (expected == nullptr || id.channel >= expected->peer.channels || id.stream >= self_.streams) return false;
  return expected->is_missing[index_of(id)];
}

bool ConnectionSetup::secure(Line& line, Tls::Side side) const {
  if (tls_ != nullptr) line.tls = Tls::make(*tls_, line.fd, side);
  return (line.tls != nullptr) == (tls_ != nullptr);
}

void ConnectionSetup::admit(const LineId& id, std::unique_ptr<Line> line) {
  Expected& expected = *find(id.peer);
  expected.is_missing[index_of(id)] = false;
  --expected.missing;
  --missing_;
  if (!line->is_failed) expected.begun.try_emplace(id.channel, Expected::Begun{Clock::now(), line->fd});
  admit_(id, std::move(line));
}

void ConnectionSetup::fail(Status status) {
  if (failure_.is_ok()) failure_ = std::move(status);
}

Status ConnectionSetup::describe_missing(std::chrono::nanoseconds waited) const {
  std::vector<int> ranks;
  std::string text;
  for (const auto& [rank, expected] : expected_) {
    if (expected.missing == 0) continue;
    ranks.push_back(rank);
    if (ranks.size() > kMaxNamed) continue;
    const std::string reason = expected.reason.empty() ? "it has not connected" : expected.reason;
    text += (ranks.size() > 1 ? "; rank " : "rank ") + std::to_string(rank) + " at " + expected.peer.address + ": " +
            reason;
  }
  if (ranks.size() > kMaxNamed) text += "; ...";
  if (const size_t refused = refused_ + (unproved_ ? unproved_->refused() : 0); refused > 0)
    text += " (" + std::to_string(refused) + " connections were refused because authentication failed)";
  const auto waited_ms = std::chrono::duration_cast<std::chrono::milliseconds>(waited).count();
  const size_t missing = ranks.size();
  return error(Code::Timeout, "connect rank %d: %zu of %zu peers missing after %lld ms: %s", self_.rank, missing,
               expected_.size(), static_cast<long long>(waited_ms), text.c_str())
      .with_peers(std::move(ranks));
}

}  // namespace ccom::tcp
