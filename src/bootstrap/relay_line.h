// SPDX-License-Identifier: Apache-2.0
//
// A connection between a rank and the relay of its host, or the server of the rendezvous that runs there: a unix socket
// in a folder that only this user can enter, a handshake (base/handshake.h), and then messages of the rendezvous, each
// after its length.
//
// Non-blocking. Used by one thread.
#pragma once

#include <sys/types.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.h"
#include "base/handshake.h"
#include "base/status.h"
#include "base/time.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// A socket that listens. Its folder is there as long as it is, and if the process is killed until another one listens.
class RelaySocket {
 public:
  RelaySocket() = default;
  RelaySocket(RelaySocket&& other) noexcept { *this = std::move(other); }
  RelaySocket& operator=(RelaySocket&& other) noexcept;
  ~RelaySocket() { close(); }

  int fd() const { return socket_.get(); }
  bool is_open() const { return socket_.is_open(); }
  void close();

 private:
  friend class RelayPlace;
  std::string folder_{};  // "": none
  Descriptor lock_, socket_;
};

// Where processes of one user in one network namespace find each other by the secret of a start.
class RelayPlace {
 public:
  // Where the ranks meet that also share `host` ("": that of the namespace).
  RelayPlace(const UniqueId& id, const std::string& host);
  // Where the server of the rendezvous is.
  static RelayPlace of_server(const Secret& secret, uint64_t communicator);
  // Not open: another process listens there, or it cannot be done.
  RelaySocket listen() const;
  // Not open: nobody listens there, or somebody else than a process of this user. Blocks for a moment.
  Descriptor connect() const;
  // The same without waiting for who may be about to listen.
  Descriptor try_to_connect() const;
  HandshakeIdentity identity(Rank self) const;

 private:
  RelayPlace(const Secret& secret, uint64_t communicator, const std::string& host);

  const Secret key_;
  const uint64_t communicator_;
  const std::string folder_;
};

// What many ranks are told alike. Where it is long, it lies in memory that they read, and its bytes pass through no
// connection.
class RelayedText {
 public:
  explicit RelayedText(std::string text);

 private:
  friend class RelayLine;
  std::string text_;
  std::shared_ptr<const Descriptor> memory_;  // null: it is short
};

class RelayLine {
 public:
  static RelayLine accepted(Descriptor socket, const RelayPlace& place);
  static RelayLine connected(Descriptor socket, const RelayPlace& place, Rank self);

  int fd() const { return socket_.get(); }
  bool is_proved() const { return handshake_.is_complete(); }
  Rank peer() const { return handshake_.peer(); }
  bool has_ended() const { return has_ended_; }
  bool has_unsent() const { return !unsent_.empty(); }
  // Reads and sends what is there and taken.
  void step();
  // Once it is proved; what does not go at once goes with step().
  void send(const std::string& message);
  void send(const RelayedText& message);
  std::optional<std::string> receive();
  void close() {
    socket_ = Descriptor();
    has_ended_ = true;
  }
  // Whether receive() has something, or the connection has ended. Any thread, while no other uses it.
  bool has_news() const;

 private:
  RelayLine(Descriptor socket, Handshake handshake);
  void prove();
  void flush();
  ssize_t read_some();
  void add_unsent(std::string_view bytes) {
    (unsent_.empty() ? unsent_.emplace_back() : unsent_.back()).bytes += bytes;
  }

  struct Unsent {
    std::string bytes{};
    std::shared_ptr<const Descriptor> memory{};  // goes with the first of them
  };
  Descriptor socket_;
  Handshake handshake_;
  std::list<Unsent> unsent_;
  std::string unparsed_;
  std::list<Descriptor> memories_;  // that have come, in the order of their messages
  bool has_ended_ = false;
};

}  // namespace ccom
