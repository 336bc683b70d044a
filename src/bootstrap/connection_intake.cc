// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/connection_intake.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/tcp_socket.h"
#include "base/thread.h"
#include "bootstrap/tls_identity.h"
#include "bootstrap/unique_id.h"

namespace ccom {
namespace {

Result<uint16_t> port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return system_error(errno, "read the port");
  const bool is_ipv6 = address.ss_family == AF_INET6;
  return ntohs(is_ipv6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                       : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

constexpr size_t kMostHelloBytes = 5 + 4096;  // as kClientHelloGreeting allows

// In what has arrived, which stays there.
bool says(const Descriptor& connection, std::string_view name) {
  std::array<std::byte, kMostHelloBytes> hello;
  const ssize_t got = ::recv(connection.get(), hello.data(), hello.size(), MSG_PEEK | MSG_DONTWAIT);
  return got > 0 && asks_for(ConstBytes(hello).first(static_cast<size_t>(got)), name);
}

// With the alert that tells a client so (RFC 6066, 3: unrecognized_name). What it has sent is read, because a
// connection that is closed with unread bytes is reset, and the alert lost.
void refuse(const Descriptor& connection) {
  constexpr unsigned char kAlert[] = {21, 3, 3, 0, 2, 2, 112};
  std::array<char, kMostHelloBytes> hello;
  (void)!::recv(connection.get(), hello.data(), hello.size(), MSG_DONTWAIT);
  (void)!::send(connection.get(), kAlert, sizeof kAlert, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Says what there is to say to a probe, all of which has arrived. False: this is something else.
bool answer_probe(const Descriptor& connection, const PlainAnswers& answers) {
  HandshakeMessage hello;
  const auto peek = ::recv(connection.get(), &hello, sizeof hello, MSG_PEEK | MSG_DONTWAIT);
  if (peek < ssize_t{sizeof hello} || hello.magic != kHandshakeMagic) return false;
  (void)!::recv(connection.get(), &hello, sizeof hello, MSG_DONTWAIT);  // or its end would be a reset
  if (const std::optional<HandshakeMessage> answer = answers.answer(hello))
    (void)!::send(connection.get(), &*answer, sizeof *answer, MSG_NOSIGNAL | MSG_DONTWAIT);
  return true;
}

}  // namespace

bool asks_for(ConstBytes hello, std::string_view name) {
  return std::string_view(reinterpret_cast<const char*>(hello.data()), hello.size()).find(name) !=
         std::string_view::npos;
}

Result<std::unique_ptr<ConnectionIntake>> ConnectionIntake::listen(const std::string& address, uint16_t port,
                                                                   const Secret& secret, Take take, WouldAdmit admits) {
  const std::string endpoint = endpoint_text(address, port);
  if (is_wildcard_address(address)) {
    return error(Code::ConfigError, "rendezvous server %s: ccom does not listen on wildcard addresses",
                 endpoint.c_str())
        .with_cure("use one address of this host");
  }
  CCOM_TRY_ASSIGN(UnprovedConnections arriving,
                  UnprovedConnections::create(admits ? kEitherGreeting : kClientHelloGreeting));
  std::optional<PlainAnswers> answers;
  if (admits) answers.emplace(secret, std::move(admits));
  std::unique_ptr<ConnectionIntake> intake(
      new ConnectionIntake(std::move(arriving), tls_name(secret), std::move(take), std::move(answers)));
  Result<Descriptor> listener = listen_at_port(address, port, SOMAXCONN);
  if (!listener) return std::move(listener).error().in("listen for the ranks at " + endpoint);
  intake->listener_ = *std::move(listener);
  CCOM_TRY_ASSIGN(intake->port_, port_of(intake->listener_));
  CCOM_TRY(intake->arriving_.add_listener(intake->listener_.get()));
  intake->stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!intake->stop_.is_open()) return system_error(errno, "open an eventfd");
  return intake;
}

Status ConnectionIntake::start() {
  const int refused = start_thread(thread_, "ccom-accept", [this] { run(); });
  return refused == 0 ? Status::ok() : system_error(refused, "start the thread that accepts connections");
}

void ConnectionIntake::stop() {
  if (thread_.joinable()) {
    (void)::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  arriving_.remove_listeners();
  listener_ = Descriptor();
}

void ConnectionIntake::hand_over(Descriptor connection) {
  if (answers_ && answer_probe(connection, *answers_)) return;
  if (!says(connection, name_)) return refuse(connection);
  disable_nagle(connection.get());
  take_(std::move(connection), listener_.get());
}

void ConnectionIntake::run() {
  while (true) {
    std::array<pollfd, 2> events{{{arriving_.fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    (void)::poll(events.data(), events.size(), arriving_.wait_ms());
    if (events[1].revents != 0) return;
    try {
      for (Descriptor next = arriving_.next(); next.is_open(); next = arriving_.next()) hand_over(std::move(next));
    } catch (const std::bad_alloc&) {  // that connection is lost; its rank tries again
      log(LogLevel::Warn, "the rendezvous server has no memory for a connection");
    }
  }
}

}  // namespace ccom
