// SPDX-License-Identifier: Apache-2.0
//
// How all connections of a rank come to be: the lower rank of a pair accepts, the higher dials, once for every channel
// and stream. Everything is asynchronous, on the caller's io_context; nobody can hold up anybody:
// - whoever connects to us has two seconds to prove itself, costs one descriptor until then, and is dropped without a
// word
//   if it cannot; there are at most max_unproved() of them, more wait in the kernel;
// - a dial that fails is repeated, with growing pauses, until the deadline.
// Belongs to one thread; lives during connect() only.
#pragma once

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "transports/tcp/hello.h"
#include "transports/tcp/line.h"
#include "transports/tcp/peer_address.h"
#include "transports/tcp/socket.h"
#include "transports/transport.h"

namespace ccom::tcp {

class ConnectionSetup {
 public:
  // Gets each proved connection.
  using Admit = std::function<void(const LineId& id, std::unique_ptr<Line> line)>;

  // What it takes from its transport, and leaves there.
  struct Place {
    asio::io_context& io;
    std::vector<Acceptor>& acceptors;  // one per interface
    const Identity& self;
    const TlsContext* tls = nullptr;  // null without TLS
    SocketOptions options{};
  };

  // Everything passed by reference outlives it. The peers' addresses have been checked.
  ConnectionSetup(const Place& place, std::span<const Peer> peers, Admit admit);
  ConnectionSetup(const ConnectionSetup&) = delete;
  ConnectionSetup& operator=(const ConnectionSetup&) = delete;
  ~ConnectionSetup();

  // Blocking. On return nothing of it is left in the io_context, and the acceptors are closed.
  Status run(Deadline deadline);

 private:
  class AcceptHandshake;  // one accepted connection that has not proved itself
  class ConnectAttempt;      // one connection to be made
  struct Expected {
    Peer peer;
    std::vector<bool> is_in;  // by channel and stream
    size_t missing = 0;
    std::string trouble;  // the last that kept it away
  };

  // A place where peers come in, and from which we go to theirs.
  struct Door {
    Acceptor& acceptor;
    asio::ip::address address;
    bool is_armed = false;
  };

  void start_dials(Rank rank, Expected& expected, const PeerAddress& address);
  void accept_when_ready(Door& door);
  void accept_when_ready();
  void accept_all(Door& door);
  void accept_later();
  void forget(const std::shared_ptr<AcceptHandshake>& greeting);
  size_t max_unproved() const { return std::max<size_t>(64, 2 * missing_); }
  Expected* find(Rank peer);
  bool is_missing(const LineId& id);
  // False when memory is out.
  bool secure(Line& line, Tls::Side side) const;
  void admit(const LineId& id, std::unique_ptr<Line> line);
  void fail(Status status);
  void close();
  void run_until(Deadline deadline);
  Status describe_missing(std::chrono::nanoseconds waited) const;

  asio::io_context& io_;
  const Identity& self_;
  const TlsContext* const tls_;
  const SocketOptions options_;
  const Admit admit_;
  std::vector<Door> doors_;  // by interface
  std::map<Rank, Expected> expected_;
  size_t missing_ = 0;  // lines of all peers
  size_t refused_ = 0;  // connections that proved nothing
  asio::steady_timer pause_;
  std::list<std::shared_ptr<AcceptHandshake>> greetings_;
  std::vector<std::shared_ptr<ConnectAttempt>> dials_;
  Status failure_;
};

}  // namespace ccom::tcp
