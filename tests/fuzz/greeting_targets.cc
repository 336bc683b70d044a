// SPDX-License-Identifier: Apache-2.0
//
// What strangers say first at a port, in whatever pieces it arrives: to TCP listeners (base/unproved.h), in front of
// the rendezvous server, and where a host's leader hands over its segment; and what is said to who fetches it.
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <thread>

#include "base/handshake.h"
#include "base/unproved.h"
#include "bootstrap/connection_intake.h"
#include "memory/shared_segment.h"
#include "tests/fuzz/target.h"

namespace ccom {
namespace {

using fuzz::Reader;
using fuzz::require;

// The first one that is free; the same before and after, so that none has leaked.
int next_descriptor() {
  const Descriptor next(::dup(0));
  return next.get();
}

// A name that is in no file system.
sockaddr_un abstract_address(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  return address;
}

Descriptor listen_at(const sockaddr_un& address, int type) {
  Descriptor listener(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  require(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  require(::listen(listener.get(), 16) == 0);
  return listener;
}

Descriptor connect_to(const sockaddr_un& address, int type) {
  Descriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  require(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

// Several connections speak in turn. Whoever is let through has said all that its first bytes announce, and nothing of
// it was taken; whoever has said it all is let through; and what was said in the end decides, not the pieces.
void greet(Reader& reader, const Greeting& greeting) {
  constexpr size_t kVisitors = 4;
  const sockaddr_un address = abstract_address("ccom fuzz greetings " + std::to_string(::getpid()));
  const Descriptor listener = listen_at(address, SOCK_STREAM | SOCK_NONBLOCK);
  UnprovedConnections unproved = *UnprovedConnections::create(greeting);
  require(unproved.add_listener(listener.get()).is_ok());
  std::vector<Descriptor> visitors;
  size_t welcome = 0;
  for (int steps = 0; steps < 64 && !reader.is_empty(); ++steps) {
    const auto kind = reader.number<uint8_t>();
    if (visitors.size() < kVisitors && kind % 4 == 0) visitors.push_back(connect_to(address, SOCK_STREAM));
    if (!visitors.empty()) {
      const int visitor = visitors[(kind >> 2) % visitors.size()].get();
      const ConstBytes piece = reader.take(reader.below(600));
      if (!piece.empty()) (void)!::send(visitor, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if ((kind & 0x30) == 0x30) (void)::shutdown(visitor, SHUT_WR);
    }
    for (Descriptor next = unproved.next(); next.is_open(); next = unproved.next()) {
      std::vector<std::byte> said(64 * 600);
      const ssize_t got = ::recv(next.get(), said.data(), said.size(), MSG_DONTWAIT);
      require(got > 0);
      const ConstBytes all = ConstBytes(said).first(static_cast<size_t>(got));
      const size_t whole = greeting.measure(all.first(std::min(all.size(), UnprovedConnections::kHeadBytes)));
      require(whole > 0 && whole <= all.size());
      (void)asks_for(all, "ccom-0123456789abcdef");
      ++welcome;
    }
    require(welcome + unproved.refused() + unproved.waiting() <= visitors.size());
  }
}

CCOM_FUZZ_TARGET(greetings) {
  const int before = next_descriptor();
  Reader reader(input);
  const Greeting* const greetings[] = {&kHandshakeGreeting, &kClientHelloGreeting, &kEitherGreeting};
  greet(reader, *greetings[reader.below(3)]);
  require(next_descriptor() == before);
}

// False if nobody can hear it.
bool send_packet(const Descriptor& socket, ConstBytes packet, const std::vector<int>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  iovec part{const_cast<std::byte*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return ::sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

constexpr size_t kSegmentBytes = 8192;

Secret key_of_both() {
  const uint8_t bytes[Secret::kBytes] = {1};
  return Secret(bytes);
}

HandshakeIdentity identity(const Secret& key, int32_t self, std::string_view path) {
  return {.protocol = HandshakeProtocol::Segment, .key = key, .self = self, .channel = path};
}

// One packet of the conversation: right, altered, or anything; with up to seven descriptors of right and wrong kinds.
bool say(Reader& reader, const Descriptor& socket, Handshake& handshake, const SharedSegment& segment) {
  const auto kind = reader.number<uint8_t>();
  std::vector<int> descriptors;
  for (size_t count = kind >> 5; count > 0; --count)
    descriptors.push_back((kind & 16) != 0 ? segment.fd() : socket.get());
  if ((kind & 3) == 3 || !handshake.is_our_turn())
    return send_packet(socket, reader.take(reader.below(400)), descriptors);
  HandshakeMessage message = handshake.next();
  if ((kind & 3) == 2) message.writable_bytes()[reader.below(sizeof message)] ^= reader.number<std::byte>();
  return send_packet(socket, message.bytes(), descriptors);
}

// Clients with and without the key, at a leader that waits for two. Each look at its limit is our turn.
CCOM_FUZZ_TARGET(handover_to_leader) {
  const int before = next_descriptor();
  {
    const Secret key = key_of_both();
    struct Client {
      Descriptor socket;
      Handshake handshake;
    };
    std::vector<Client> clients;
    Reader reader(input);
    const auto segment = *SharedSegment::create(kSegmentBytes, 0);
    const auto server = *SegmentServer::create(key);
    const std::string path = server->path();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto our_turn = [&] {
      while (!reader.is_empty()) {  // until something has happened that the leader does not wait for
        const auto kind = reader.number<uint8_t>();
        if (clients.empty() || (kind % 4 == 0 && clients.size() < 6)) {
          clients.push_back({connect_to(address, SOCK_SEQPACKET), Handshake::connector(identity(key, 1, path), 0)});
        }
        Client& client = clients[(kind >> 2) % clients.size()];
        HandshakeMessage heard;
        if (::recv(client.socket.get(), &heard, sizeof heard, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof heard))
          (void)client.handshake.receive(heard);
        const bool is_heard = say(reader, client.socket, client.handshake, *segment);
        if (kind >= 0xf0 || !is_heard) clients.erase(clients.begin() + (&client - clients.data()));
        if (is_heard) return false;
      }
      return true;
    };
    const Status status = server->serve(*segment, 2, {Deadline::after(std::chrono::seconds(20)), our_turn});
    require(status.is_ok() || status.code() == Code::Timeout);
  }
  require(next_descriptor() == before);
}

// A leader, or somebody else where it should be, to a client that holds the key. Its segment is the right one only when
// the leader has proved itself.
CCOM_FUZZ_TARGET(handover_to_client) {
  const int before = next_descriptor();
  {
    const Secret key = key_of_both();
    const std::string name = "ccom fuzz leader " + std::to_string(::getpid());
    const sockaddr_un address = abstract_address(name);
    const std::string path(address.sun_path, 1 + name.size());
    const Descriptor listener = listen_at(address, SOCK_SEQPACKET);
    Reader reader(input);
    bool is_proved = false;
    const auto segment = *SharedSegment::create((reader.below(4) + 1) * kSegmentBytes / 2, 0);
    std::thread leader([&] {
      const Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      Handshake handshake = Handshake::acceptor(identity(key, 0, path));
      while (!reader.is_empty()) {
        HandshakeMessage heard;
        if (::recv(socket.get(), &heard, sizeof heard, 0) != static_cast<ssize_t>(sizeof heard)) return;
        is_proved = handshake.receive(heard) && handshake.step() == HandshakeStep::Welcome;
        if (!say(reader, socket, handshake, *segment)) return;
      }
    });
    const auto fetched = fetch_segment(path, kSegmentBytes, key, Deadline::after(std::chrono::seconds(20)));
    leader.join();
    if (fetched) require(is_proved && (*fetched)->bytes().size() == kSegmentBytes);
    if (!fetched) require(fetched.error().code() != Code::Timeout);
  }
  require(next_descriptor() == before);
}

}  // namespace
}  // namespace ccom
