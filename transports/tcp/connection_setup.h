// SPDX-License-Identifier: Apache-2.0
//
// Establishes connections of a rank: for every channel and stream of a pair the lower rank accepts and the higher
// connects. Asynchronous, on the caller's io_context, so that no peer can block another:
// - an incoming connection costs one descriptor until its first message has arrived (base/unproved.h), then has two
//   seconds to show the key, and is dropped silently if it fails, or repeats what somebody else has said;
// - a failed attempt is repeated with growing delays until the deadline, and so is one whose hello the peer's kernel
//   has not acknowledged in time.
// All at once and blocking, at the start, or step by step, those of channels that have been asked for. Used by one
// thread; exists only while connections are missing.
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
    // They do not listen yet, and are to keep their ports: it listens where others have to connect, until its end.
    bool keeps_ports = false;
    const Identity& self;
    const TlsContext* tls = nullptr;  // null without TLS
    SocketOptions options{};
    // Where lines may be lost (rails.h): how long those that are missing of a channel are waited for, once it has one.
    std::chrono::milliseconds rail_limit{0};  // 0: for ever
  };

  // Everything passed by reference must outlive it.
  ConnectionSetup(const Context& context, Admit admit);
  ConnectionSetup(const ConnectionSetup&) = delete;
  ConnectionSetup& operator=(const ConnectionSetup&) = delete;
  ~ConnectionSetup();

  // A channel of that peer, whose address has been validated, is to be connected, and is so once all its lines were
  // admitted. Not twice.
  Status add(const Peer& peer, int channel);
  // Until all are. Blocks. On return no handler of it is left in the io_context, and the listeners are closed.
  Status run(const WaitLimit& limit);
  // Goes on without blocking. An error is final.
  Status step();
  bool is_complete() const { return missing_ == 0; }

 private:
  class AcceptHandshake;  // an accepted connection that is not authenticated yet
  class ConnectAttempt;   // one outgoing connection
  struct Expected {
    Peer peer;
    std::vector<bool> is_missing;  // by channel and stream
    size_t missing = 0;
    std::string reason{};  // the last reason for failure
    struct Begun {         // a channel that has a line, and lacks some
      Clock::time_point since{};
      int fd = -1;  // of the line
    };
    std::map<int, Begun> begun{};  // by channel
  };

  // A local interface: accepts connections, and is the source of outgoing ones.
  struct LocalInterface {
    Descriptor& listener;
    asio::ip::address address;
  };

  Status start_attempts(Expected& expected, int channel);
  Status lose_dead_rails();
  bool is_dead(const Expected& expected, const LineId& id) const;
  Status lose(const Expected& expected, const LineId& id);
  Status listen();
  void stop_listening();
  void accept_when_ready();
  void accept_some();
  void forget(const std::shared_ptr<AcceptHandshake>& handshake) { accepted_.remove(handshake); }
  Expected* find(Rank peer);
  size_t index_of(const LineId& id) const {
    return static_cast<size_t>(id.channel) * static_cast<size_t>(self_.streams) + static_cast<size_t>(id.stream);
  }
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
  const bool keeps_ports_;
  const std::chrono::milliseconds rail_limit_;
  const Admit admit_;
  std::vector<LocalInterface> local_interfaces_;  // by interface
  std::map<Rank, Expected> expected_;
  size_t missing_ = 0;  // lines not yet established, of all peers
  size_t refused_ = 0;  // unauthenticated connections
  std::optional<UnprovedConnections> unproved_;
  asio::posix::stream_descriptor arrivals_;  // of unproved_
  bool is_armed_ = false;
  Deadline next_look_ = Deadline::after_ms(0);
  HelloNumbers answered_;  // of those who hold the key
  std::list<std::shared_ptr<AcceptHandshake>> accepted_;
  std::vector<std::shared_ptr<ConnectAttempt>> attempts_;
  Status failure_;
};

}  // namespace ccom::tcp
