// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/relay_line.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include "bootstrap/gathering.h"

namespace ccom {
namespace {

// A relay has no rank of its own.
constexpr Rank kRelay = -2;
constexpr size_t kMostMessageBytes = kMaxExchangeBytes + kMaxPartBytes;

std::string relay_name(const Secret& key, const std::string& host) {
  constexpr char kDigits[] = "0123456789abcdef";
  const Secret digest = key.derive("ccom relay name " + std::to_string(::geteuid()) + " " + host);
  std::string name(1, '\0');  // in no folder
  name += "ccom-relay-";
  for (const uint8_t byte : digest.bytes().first(16)) {
    name.push_back(kDigits[byte >> 4]);
    name.push_back(kDigits[byte & 15]);
  }
  return name;
}

struct RelayAddress {
  explicit RelayAddress(const std::string& name)
      : length(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t length;
};

Descriptor new_relay_socket() {
  return Descriptor::from([] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

}  // namespace

RelayPlace::RelayPlace(const UniqueId& id, const std::string& host)
    : key_(id.secret.derive("ccom relay " + std::to_string(id.communicator))),
      communicator_(id.communicator),
      name_(relay_name(key_, host)) {}

Descriptor RelayPlace::listen() const {
  Descriptor socket = new_relay_socket();
  const RelayAddress address(name_);
  const bool listens = socket.is_open() && ::bind(socket.get(), address.get(), address.length) == 0 &&
                       ::listen(socket.get(), SOMAXCONN) == 0;
  return listens ? std::move(socket) : Descriptor();
}

// A socket is bound before it listens, and the queue of one that does may be full.
Descriptor RelayPlace::connect() const {
  constexpr int kAttempts = 2000;
  const RelayAddress address(name_);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Descriptor socket = new_relay_socket();
    if (socket.is_open() && ::connect(socket.get(), address.get(), address.length) == 0)
      return is_of_this_user(socket.get()) ? std::move(socket) : Descriptor();
    if (errno != EAGAIN && errno != EINTR && attempt > kAttempts / 100) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Descriptor();
}

HandshakeIdentity RelayPlace::identity(Rank self) const {
  return {.protocol = HandshakeProtocol::Relay, .key = key_, .communicator = communicator_, .self = self};
}

RelayLine::RelayLine(Descriptor socket, Handshake handshake)
    : socket_(std::move(socket)), handshake_(std::move(handshake)) {}

RelayLine RelayLine::accepted(Descriptor socket, const RelayPlace& place) {
  const bool is_friend = is_of_this_user(socket.get());
  RelayLine line(std::move(socket), Handshake::acceptor(place.identity(kRelay)));
  line.has_ended_ = !is_friend;
  return line;
}

RelayLine RelayLine::connected(Descriptor socket, const RelayPlace& place, Rank self) {
  RelayLine line(std::move(socket), Handshake::connector(place.identity(self), kRelay));
  line.prove();
  return line;
}

void RelayLine::step() {
  std::array<char, 1 << 16> bytes;
  while (!has_ended_) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      has_ended_ = true;
    } else {
      unparsed_.append(bytes.data(), static_cast<size_t>(got));
    }
  }
  prove();
  flush();
}

// Messages of the handshake, ours and theirs, as far as they go.
void RelayLine::prove() {
  while (!handshake_.is_complete()) {
    if (handshake_.is_our_turn()) {
      const HandshakeMessage message = handshake_.next();
      unsent_.append(reinterpret_cast<const char*>(&message), sizeof message);
      continue;
    }
    if (unparsed_.size() < sizeof(HandshakeMessage)) break;
    HandshakeMessage message;
    std::memcpy(&message, unparsed_.data(), sizeof message);
    unparsed_.erase(0, sizeof message);
    has_ended_ |= !handshake_.receive(message);
    if (has_ended_) return;
  }
  flush();
}

void RelayLine::flush() {
  while (!unsent_.empty() && !has_ended_) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {
      unsent_.clear();  // what has arrived can still be received
      return;
    }
    unsent_.erase(0, static_cast<size_t>(sent));
  }
}

void RelayLine::send(const std::string& message) {
  const auto size = static_cast<uint32_t>(message.size());
  unsent_.append(reinterpret_cast<const char*>(&size), sizeof size);
  unsent_ += message;
  flush();
}

std::optional<std::string> RelayLine::receive() {
  uint32_t size = 0;
  if (!is_proved() || unparsed_.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, unparsed_.data(), sizeof size);
  has_ended_ |= size > kMostMessageBytes;
  if (size > kMostMessageBytes || unparsed_.size() - sizeof size < size) return std::nullopt;
  std::string message = unparsed_.substr(sizeof size, size);
  unparsed_.erase(0, sizeof size + size);
  return message;
}

bool RelayLine::has_news() const {
  pollfd polled{socket_.get(), POLLIN, 0};
  return has_ended_ || !unparsed_.empty() || ::poll(&polled, 1, 0) != 0;
}

}  // namespace ccom
