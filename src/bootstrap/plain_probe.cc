// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/plain_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/tcp_socket.h"
#include "bootstrap/this_build.h"

namespace ccom {
namespace {

// The server has no rank of its own.
constexpr Rank kServer = -2;

struct ProbeTerms {
  int32_t nranks = 0;
  uint32_t admits = 0;
};

Secret probe_key(const Secret& secret) { return secret.derive("ccom probe of " + this_build()); }

// The secret is the job's alone, so no number of a communicator is needed, which the server does not know.
HandshakeIdentity probe_identity(const Secret& key, Rank self) {
  return {.protocol = HandshakeProtocol::Probe, .key = key, .self = self};
}

}  // namespace

PlainAnswers::PlainAnswers(const Secret& secret, WouldAdmit admits)
    : key_(probe_key(secret)), admits_(std::move(admits)) {}

std::optional<HandshakeMessage> PlainAnswers::answer(const HandshakeMessage& hello) const {
  Handshake handshake = Handshake::acceptor(probe_identity(key_, kServer));
  if (!handshake.receive(hello)) return std::nullopt;
  ProbeTerms terms = hello.terms_as<ProbeTerms>();
  terms.admits = admits_(handshake.peer(), terms.nranks) ? 1 : 0;
  return handshake.next(terms);
}

PlainProbe::PlainProbe(const UniqueId& id, int nranks, Rank rank)
    : nranks_(nranks),
      handshake_(Handshake::connector(probe_identity(probe_key(id.secret), rank), kServer)),
      hello_(handshake_.next(ProbeTerms{.nranks = nranks})) {
  Result<Descriptor> socket = begin_to_connect(id.address, id.port);
  if (socket) {
    socket_ = *std::move(socket);
  } else {
    answer_ = socket.error().sys_errno() == ECONNREFUSED ? Answer::Refused : Answer::Unknown;
  }
}

PlainProbe::Answer PlainProbe::ask(Deadline deadline) {
  while (answer_ == Answer::Pending) {
    answer_ = step();
    if (answer_ != Answer::Pending) socket_ = Descriptor();
    if (answer_ != Answer::Pending || deadline.passed()) break;
    pollfd polled{socket_.get(), static_cast<short>(has_asked_ ? POLLIN : POLLOUT), 0};
    (void)::poll(&polled, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count()));
  }
  return answer_;
}

// A connection that is under way takes nothing yet, and a new one takes all of a message.
PlainProbe::Answer PlainProbe::step() {
  const auto failed = [] {
    if (errno == EAGAIN || errno == EINTR) return Answer::Pending;
    return errno == ECONNREFUSED ? Answer::Refused : Answer::Unknown;
  };
  if (!has_asked_) {
    if (::send(socket_.get(), &hello_, sizeof hello_, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return failed();
    has_asked_ = true;
  }
  const Bytes rest = heard_.writable_bytes().subspan(received_);
  const ssize_t got = ::recv(socket_.get(), rest.data(), rest.size(), MSG_DONTWAIT);
  if (got < 0) return failed();
  received_ += static_cast<size_t>(got);
  if (got > 0 && received_ < sizeof heard_) return Answer::Pending;
  const auto terms = heard_.terms_as<ProbeTerms>();
  const bool is_yes = got > 0 && handshake_.receive(heard_) && terms.admits == 1 && terms.nranks == nranks_;
  return is_yes ? Answer::Admits : Answer::Unknown;
}

}  // namespace ccom
