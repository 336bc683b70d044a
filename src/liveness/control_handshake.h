// SPDX-License-Identifier: Apache-2.0
//
// How control connections come about: with mutual authentication, retried because the other side may start later.
//
// A peer without the key is dropped after two seconds or at its first wrong byte; until then it costs one descriptor
// and has no effect. Nothing here blocks. For one thread.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/handshake.h"
#include "base/time.h"
#include "base/tls.h"
#include "base/unproved.h"
#include "liveness/control_connection.h"
#include "liveness/sockets.h"

namespace ccom {

// What both sides of a kind of control connections know. `self` and peers are ranks of the family.
struct ControlIdentity {
  Secret key;
  uint64_t communicator = 0;
  int self = 0;
  std::shared_ptr<const TlsContext> tls{};  // null: connections are not encrypted; the same on both sides

  HandshakeIdentity handshake() const { return {HandshakeProtocol::Control, key, communicator, self}; }
};

// One connection whose handshake is in progress.
class ControlHandshake {
 public:
  // use: the communicator that the connection is made for.
  static ControlHandshake connector(const ControlIdentity& identity, ControlSocket socket, int peer, uint64_t use);
  static ControlHandshake acceptor(const ControlIdentity& identity, ControlSocket socket, HelloNumbers* answered);

  // Goes as far as it can; of an acceptor's, to the Welcome. Empty, or why it has failed.
  std::string advance();
  bool is_complete() const { return handshake_.is_complete(); }
  // Only the Welcome is missing. The acceptor's peer has proved itself: peer() and use() say who it is and what for,
  // and welcome() admits it. The connector may have been admitted already, and no other connection is.
  bool is_at_welcome() const { return !is_complete() && handshake_.step() == HandshakeStep::Welcome; }
  int peer() const { return handshake_.peer(); }
  uint64_t use() const { return use_; }
  bool welcome() { return send_next(); }
  bool is_late() const { return deadline_.passed(); }
  pollfd awaited() const;
  // After that, or after welcome(). Leaves nothing.
  std::shared_ptr<ControlConnection> connection();

 private:
  ControlHandshake(Handshake handshake, ControlSocket socket, uint64_t use, bool is_connector);
  std::string connect();
  bool send_next();

  ControlSocket socket_;
  Handshake handshake_;
  uint64_t use_;
  bool is_connector_, is_connected_, is_secured_ = false;
  Deadline deadline_;
  HandshakeMessage input_{};
  size_t input_bytes_ = 0;
};

// The connections that arrive at this side.
class ControlAcceptor {
 public:
  // Whether that peer is expected; asked of those who have proved themselves.
  using IsExpected = std::function<bool(int peer, uint64_t use)>;
  using Attach = std::function<void(int peer, uint64_t use, std::shared_ptr<ControlConnection>)>;

  static Result<std::unique_ptr<ControlAcceptor>> create(const ControlIdentity& identity);
  Status listen_at(const Descriptor& listener) { return arriving_.add_listener(listener.get()); }
  // Readable when step() is to be called; also every millisecond or so while it is not idle.
  int fd() const { return arriving_.fd(); }
  void step(const IsExpected& is_expected, const Attach& attach);
  void add_awaited(std::vector<pollfd>& events) const;
  bool is_idle() const { return pending_.empty() && arriving_.waiting() == 0; }

 private:
  ControlAcceptor(const ControlIdentity& identity, UnprovedConnections arriving)
      : identity_(identity), arriving_(std::move(arriving)) {}
  void accept_all();
  bool is_settled(ControlHandshake& one, const IsExpected& is_expected, const Attach& attach);

  const ControlIdentity& identity_;
  UnprovedConnections arriving_;
  HelloNumbers answered_;  // of those who hold the key
  std::vector<std::unique_ptr<ControlHandshake>> pending_;
};

// A connection that this side makes to one peer.
class ControlConnector {
 public:
  ControlConnector(int peer, uint64_t use, std::string address)
      : peer_(peer), use_(use), address_(std::move(address)) {}

  // The connection, when it is there; nothing more is to be called then.
  std::shared_ptr<ControlConnection> step(const ControlIdentity& identity);
  void add_awaited(std::vector<pollfd>& events) const;
  const std::string& address() const { return address_; }
  const std::string& last_failure() const { return last_failure_; }
  // How often nobody has listened at the address, or somebody else, in a row; other failures begin a new row.
  int refusals() const { return refusals_; }

 private:
  void start(const ControlIdentity& identity);
  void fail(std::string why);

  int peer_;
  uint64_t use_;
  std::string address_;
  std::optional<ControlHandshake> pending_;
  int64_t retry_ms_ = 1;
  Deadline next_try_ = Deadline::after_ms(0);
  std::string last_failure_{"no answer"};
  int refusals_ = 0;
};

}  // namespace ccom
