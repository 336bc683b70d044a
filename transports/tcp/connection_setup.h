// SPDX-License-Identifier: Apache-2.0
//
// Establishes all connections of a rank: for every channel and stream of a pair the lower rank accepts and the higher
// connects. Asynchronous, on the caller's io_context, so that no peer can block another:
// - an incoming connection costs one descriptor until its first message has arrived (base/unproved.h), then has two
//   seconds to show the key, and is dropped silently if it fails, or repeats what somebody else has said;
// - a failed attempt is repeated with growing delays until the deadline, and so is one whose hello the peer's kernel
//   has not acknowledged in time.
// Used by one thread; exists during connect() only.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "base/unproved.h"
#include "base/wait_limit.h"
#include "transports/tcp/line.h"
#include "transports/tcp/line_terms.h"
#include "transports/tcp/peer_address.h"
#include "transports/tcp/socket.h"
#include "transports/transport.h"

namespace ccom::tcp {

class ConnectionSetup {
 public:
  // Receives each authenticated connection.
  using Admit = std::function<void(const LineId& id, std::unique_ptr<Line> line)>;

  // The part of the transport that it uses.
  struct Context {
    asio::io_context& io;
    std::vector<Descriptor>& listeners;  // one per interface
    const Identity& self;
    const TlsContext* tls = nullptr;  // null without TLS
    SocketOptions options{};
  };

  // Everything passed by reference must outlive it. The peers' addresses have been validated.
  ConnectionSetup(const Context& context, std::span<const Peer> peers, Admit admit);
  ConnectionSetup(const ConnectionSetup&) = delete;
  ConnectionSetup& operator=(const ConnectionSetup&) = delete;
  ~ConnectionSetup();

  // Blocks. On return no handler of it is left in the io_context, and the listeners are closed.
  Status run(const WaitLimit& limit);

 private:
  class AcceptHandshake;  // an accepted connection that is not authenticated yet
  class ConnectAttempt;   // one outgoing connection
  struct Expected {
    Peer peer;
    std::vector<bool> is_connected;  // by channel and stream
    size_t missing = 0;
    std::string reason;  // the last reason for failure
  };

  // A local interface: accepts connections, and is the source of outgoing ones.
  struct LocalInterface {
    Descriptor& listener;
    asio::ip::address address;
  };

  void start_attempts(Rank rank, Expected& expected, const PeerAddress& address);
  Status listen();
  void accept_when_ready();
  void accept_some();
  void forget(const std::shared_ptr<AcceptHandshake>& handshake) { accepted_.remove(handshake); }
  Expected* find(Rank peer);
  bool is_missing(const LineId& id);
  // False if out of memory.
  bool secure(Line& line, Tls::Side side) const;
  void admit(const LineId& id, std::unique_ptr<Line> line);
  void fail(Status status);
  void close();
  void run_until(const WaitLimit& limit);
  Status describe_missing(std::chrono::nanoseconds waited) const;

  asio::io_context& io_;
  const Identity& self_;
  const TlsContext* const tls_;
  const SocketOptions options_;
  const Admit admit_;
  std::vector<LocalInterface> local_interfaces_;  // by interface
  std::map<Rank, Expected> expected_;
  size_t missing_ = 0;  // lines not yet established, of all peers
  size_t refused_ = 0;  // unauthenticated connections
  std::optional<UnprovedConnections> unproved_;
  asio::posix::stream_descriptor arrivals_;  // of unproved_
  bool is_armed_ = false;
  HelloNumbers answered_;  // of those who hold the key
  std::list<std::shared_ptr<AcceptHandshake>> accepted_;
  std::vector<std::shared_ptr<ConnectAttempt>> attempts_;
  Status failure_;
};

}  // namespace ccom::tcp
