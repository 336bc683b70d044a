// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/connection_setup.h"

#include "base/log.h"
#include "transports/tcp/connect_handshakes.h"
#include "transports/tcp/peer_address.h"

#include <exception>
#include <utility>

namespace ccom::tcp {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{50};
// After an error, so that peers learn its reason too and not just that nobody is there.
constexpr std::chrono::milliseconds kGrace{200};
constexpr size_t kMaxNamed = 8;

}  // namespace

ConnectionSetup::ConnectionSetup(const Place& place, std::span<const Peer> peers, Admit admit)
    : io_(place.io),
      self_(place.self),
      tls_(place.tls),
      options_(place.options),
      admit_(std::move(admit)),
      pause_(place.io) {
  ErrorCode ignored;
  for (Acceptor& acceptor : place.acceptors) {
    doors_.push_back({.acceptor = acceptor, .address = acceptor.local_endpoint(ignored).address()});
  }
  for (const Peer& peer : peers) {
    const auto lines = static_cast<size_t>(peer.channels * self_.streams);
    expected_[peer.rank] = {.peer = peer, .is_in = std::vector<bool>(lines), .missing = lines, .trouble = {}};
    missing_ += lines;
  }
}

ConnectionSetup::~ConnectionSetup() {
  try {
    close();
  } catch (const std::exception& thrown) {
    log(LogLevel::Error, "rank %d: closing connections under way: %s", self_.rank, thrown.what());
  }
}

Status ConnectionSetup::run(Deadline deadline) {
  const auto start = Clock::now();
  for (auto& [rank, expected] : expected_) {
    if (rank > self_.rank) continue;
    CCOM_TRY_ASSIGN(const PeerAddress address, parse_peer_address(expected.peer.address));
    start_dials(rank, expected, address);
  }
  for (Door& door : doors_) accept_all(door);
  run_until(deadline);
  close();
  if (!failure_.is_ok()) return std::move(failure_).in("connect rank " + std::to_string(self_.rank));
  return missing_ == 0 ? Status::ok() : describe_missing(Clock::now() - start);
}

// Interfaces in turn.
void ConnectionSetup::start_dials(Rank rank, Expected& expected, const PeerAddress& address) {
  for (int channel = 0; channel < expected.peer.channels; ++channel) {
    for (int stream = 0; stream < self_.streams; ++stream) {
      const size_t interface = static_cast<size_t>(stream) % doors_.size();
      const ConnectAttempt::Way way{.from = doors_[interface].address, .to = address.endpoints[interface]};
      dials_.push_back(std::make_shared<ConnectAttempt>(*this, LineId{rank, channel, stream}, expected, way));
      dials_.back()->start();
    }
  }
}

void ConnectionSetup::run_until(Deadline deadline) {
  bool has_failed = false;
  while (missing_ > 0 && !deadline.passed()) {
    io_.run_one_for(std::min<std::chrono::nanoseconds>(deadline.left(), kGrace));
    if (!failure_.is_ok() && !std::exchange(has_failed, true)) deadline = deadline.earlier(Deadline::after(kGrace));
  }
}

// Steps under way are called once more, find themselves closed, and let go.
void ConnectionSetup::close() {
  ErrorCode ignored;
  for (Door& door : doors_) door.acceptor.close(ignored);
  pause_.cancel();
  for (const auto& greeting : greetings_) greeting->close();
  for (const auto& dial : dials_) dial->close();
  io_.poll();
}

void ConnectionSetup::accept_when_ready(Door& door) {
  if (!door.acceptor.is_open() || std::exchange(door.is_armed, true)) return;
  door.acceptor.async_wait(Acceptor::wait_read, [this, &door](const ErrorCode& failure) {
    door.is_armed = false;
    if (!failure) accept_all(door);
  });
}

void ConnectionSetup::accept_when_ready() {
  for (Door& door : doors_) accept_when_ready(door);
}

// Without descriptors or memory accept fails at once, again and again.
void ConnectionSetup::accept_later() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](const ErrorCode& failure) {
    if (!failure) accept_when_ready();
  });
}

void ConnectionSetup::accept_all(Door& door) {
  while (greetings_.size() < max_unproved()) {
    Socket socket(io_);
    const ErrorCode failure = accept_one(door.acceptor, socket);
    if (failure == asio::error::would_block) return accept_when_ready(door);
    if (failure == asio::error::connection_aborted || failure == asio::error::interrupted) continue;
    if (failure) return accept_later();
    greetings_.push_back(std::make_shared<AcceptHandshake>(*this, std::move(socket)));
    greetings_.back()->start();
  }
}

void ConnectionSetup::forget(const std::shared_ptr<AcceptHandshake>& greeting) {
  greetings_.remove(greeting);
  accept_when_ready();
}

ConnectionSetup::Expected* ConnectionSetup::find(Rank peer) {
  const auto found = expected_.find(peer);
  return found == expected_.end() ? nullptr : &found->second;
}

bool ConnectionSetup::is_missing(const LineId& id) {
  const Expected* const expected = find(id.peer);
  if (expected == nullptr || id.channel >= expected->peer.channels || id.stream >= self_.streams) return false;
  return !expected->is_in[static_cast<size_t>(id.channel * self_.streams + id.stream)];
}

bool ConnectionSetup::secure(Line& line, Tls::Side side) const {
  if (tls_ != nullptr) line.tls = Tls::make(*tls_, line.fd, side);
  return (line.tls != nullptr) == (tls_ != nullptr);
}

void ConnectionSetup::admit(const LineId& id, std::unique_ptr<Line> line) {
  Expected& expected = *find(id.peer);
  expected.is_in[static_cast<size_t>(id.channel * self_.streams + id.stream)] = true;
  --expected.missing;
  --missing_;
  admit_(id, std::move(line));
}

void ConnectionSetup::fail(Status status) {
  if (failure_.is_ok()) failure_ = std::move(status);
}

Status ConnectionSetup::describe_missing(std::chrono::nanoseconds waited) const {
  std::vector<int> ranks;
  std::string text, host;
  for (const auto& [rank, expected] : expected_) {
    if (expected.missing == 0) continue;
    ranks.push_back(rank);
    if (host.empty()) host = expected.peer.address;
    if (ranks.size() > kMaxNamed) continue;
    const std::string trouble = expected.trouble.empty() ? "it has not connected to this rank" : expected.trouble;
    text += (ranks.size() > 1 ? "; rank " : "rank ") + std::to_string(rank) + " at " + expected.peer.address + ": " +
            trouble;
  }
  if (ranks.size() > kMaxNamed) text += "; ...";
  if (refused_ > 0)
    text += " (" + std::to_string(refused_) + " connections from others were refused: they proved nothing)";
  const auto waited_ms = std::chrono::duration_cast<std::chrono::milliseconds>(waited).count();
  return error(Code::Timeout, "connect rank %d: %zu of %zu peers missing after %lld ms: %s", self_.rank, ranks.size(),
               expected_.size(), static_cast<long long>(waited_ms), text.c_str())
      .with_peers(std::move(ranks))
      .with_host(host);
}

}  // namespace ccom::tcp
