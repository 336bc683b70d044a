// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_tcp/raw.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "tests/harness/threads.h"
#include "transports/tcp/peer_address.h"

namespace ccom::tcp {
namespace {

// IPv4 loopback, any port.
int listen_somewhere(std::string& address_text) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(fd, 8), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  address_text = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  return fd;
}

// One piece from one socket to the other. False at the end.
bool relay(const RawSocket& from, const RawSocket& to, const std::function<bool(Bytes)>& tamper) {
  std::array<std::byte, 16384> piece;
  const ssize_t got = ::recv(from.fd(), piece.data(), piece.size(), 0);
  if (got <= 0) return false;
  const Bytes bytes = Bytes(piece).first(static_cast<size_t>(got));
  return tamper(bytes) && to.write(bytes);
}

}  // namespace

RawSocket RawSocket::to(const std::string& address) {
  const auto parsed = parse_peer_address(address);
  if (!parsed) return RawSocket();
  const Endpoint* const endpoint = &parsed->endpoints.front();
  RawSocket socket(::socket(endpoint->protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  (void)::setsockopt(socket.fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  (void)::setsockopt(socket.fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const auto size = static_cast<socklen_t>(endpoint->size());
  return ::connect(socket.fd_, endpoint->data(), size) == 0 ? std::move(socket) : RawSocket();
}

RawSocket& RawSocket::operator=(RawSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RawSocket::~RawSocket() {
  if (fd_ >= 0) ::close(fd_);
}

bool RawSocket::write(ConstBytes bytes) const {
  return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

size_t RawSocket::read(Bytes bytes) const {
  size_t total = 0;
  while (total < bytes.size()) {
    const ssize_t got = ::recv(fd_, bytes.data() + total, bytes.size() - total, 0);
    if (got <= 0) break;
    total += static_cast<size_t>(got);
  }
  return total;
}

// The label is part of the protocol, so it is written out here again.
RawPeer::RawPeer(const std::string& address, const TcpConfig& like)
    : self_{.rank = 1,
            .communicator = like.communicator,
            .key = like.key.derive("ccom tcp hello"),
            .streams = like.streams,
            .crc = like.crc},
      socket_(RawSocket::to(address)),
      handshake_(Handshake::connector(handshake_identity(self_), 0)) {
  (void)socket_.write(handshake_.next(terms_of(self_, {.peer = 0}, 1)).bytes());
}

bool RawPeer::is_admitted() {
  HandshakeMessage answer;
  if (socket_.read(answer.writable_bytes()) != sizeof answer || !handshake_.receive(answer)) return false;
  return socket_.write(handshake_.next().bytes());
}

bool RawPeer::write(FragmentHeader header, ConstBytes payload) {
  header.payload_crc = crc32c(payload, 0);
  seal(header);
  return socket_.write(std::as_bytes(std::span(&header, 1))) && (payload.empty() || socket_.write(payload));
}

Proxy::Proxy(std::string target, Tamper tamper)
    : target_(std::move(target)),
      tamper_(std::move(tamper)),
      listener_(listen_somewhere(address_)),
      thread_([this] { serve(); }) {}

Proxy::~Proxy() {
  is_over_ = true;
  thread_.join();
  ::close(listener_);
}

void Proxy::serve() {
  pollfd ready{.fd = listener_, .events = POLLIN, .revents = 0};
  while (::poll(&ready, 1, 10) == 0) {
    if (is_over_) return;
  }
  const RawSocket dialler(::accept(listener_, nullptr, nullptr));
  const RawSocket target = RawSocket::to(target_);
  uint64_t position = 0;
  pollfd both[2] = {{.fd = dialler.fd(), .events = POLLIN, .revents = 0},
                    {.fd = target.fd(), .events = POLLIN, .revents = 0}};
  for (bool goes_on = true; goes_on && !is_over_;) {
    (void)::poll(both, 2, 10);
    if (both[0].revents != 0) {
      goes_on = relay(dialler, target, [this, &position](Bytes bytes) {
        return tamper_(std::exchange(position, position + bytes.size()), bytes);
      });
    }
    if (both[1].revents != 0) goes_on = goes_on && relay(target, dialler, [](Bytes) { return true; });
  }
}

TcpConfig config_of(Rank rank, const Secret& key, int streams, bool crc) {
  return {.rank = rank, .communicator = 3, .key = key, .bind_addresses = {"127.0.0.1"}, .streams = streams, .crc = crc};
}

std::unique_ptr<Transport> make(const TcpConfig& config) {
  auto made = make_tcp_transport(config);
  EXPECT_TRUE(made.has_value()) << made.error().message();
  return made ? *std::move(made) : nullptr;
}

std::vector<Status> join_all(const std::vector<Joining>& all) {
  std::vector<Status> results(all.size());
  run_threads(static_cast<int>(all.size()), [&](size_t i) {
    results[i] = all[i].transport->connect(all[i].peers, Deadline::after(all[i].patience));
  });
  return results;
}

std::vector<Status> meet(Transport& rank0, Transport& rank1, std::chrono::milliseconds patience,
                         std::chrono::milliseconds patience1) {
  if (patience1.count() == 0) patience1 = patience;
  return join_all({{&rank0, {{1, rank1.address(), 1}}, patience}, {&rank1, {{0, rank0.address(), 1}}, patience1}});
}

Pair connected_pair(const PairShape& shape) {
  const Secret key = Secret::random();
  Pair pair;
  for (Rank rank : {0, 1}) {
    TcpConfig config = config_of(rank, key, shape.streams, shape.crc);
    config.bind_addresses = {shape.bind_address};
    config.tls = shape.tls;
    config.silence = shape.silence;
    pair.ranks[rank] = make(config);
  }
  for (const Status& status : join_all({{pair.ranks[0].get(), {{1, pair.ranks[1]->address(), shape.channels}}},
                                        {pair.ranks[1].get(), {{0, pair.ranks[0]->address(), shape.channels}}}}))
    EXPECT_TRUE(status.is_ok()) << status.message();
  return pair;
}

Outcome drive(Transport& transport, size_t completions) {
  Outcome outcome;
  const Deadline deadline = Deadline::after(kPatience);
  while (outcome.status.is_ok() && !outcome.events.mismatch && outcome.events.completed.size() < completions) {
    if (deadline.passed()) {
      ADD_FAILURE() << "only " << outcome.events.completed.size() << " of " << completions << " completions";
      break;
    }
    outcome.status = transport.progress(outcome.events);
    transport.wait(std::chrono::milliseconds(1));
  }
  return outcome;
}

}  // namespace ccom::tcp
