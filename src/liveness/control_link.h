// SPDX-License-Identifier: Apache-2.0
//
// A stream of messages to one neighbour in a control tree, inside a control connection that other streams may share.
// Its end is that of the connection, or a message: a goodbye, or that the other end has closed it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "liveness/control_connection.h"

namespace ccom {

// Belongs to the liveness thread, but may be made by any thread.
class ControlLink {
 public:
  // Of what has arrived and was not taken: more than a peer says before this end has begun to listen.
  static constexpr size_t kMostWaiting = 1000;

  // Opens the stream: what arrives from now on is kept. reader: polled when there is something to receive, or null.
  ControlLink(std::shared_ptr<ControlConnection> connection, const StreamId& id, LivenessTask* reader);
  // Tells the peer, unless it knows.
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  ControlConnection& connection() { return *connection_; }
  // Sent when the thread gets to it, or with flush(). A heartbeat is dropped while the peer takes nothing.
  void send(const ControlMessage& message);
  void flush() { connection_->flush(); }
  bool has_news() const;
  // Appends received messages. Check ended() afterwards.
  void receive(std::vector<ControlMessage>& messages);
  // Why the stream has ended, if it has.
  const std::optional<std::string>& ended() const { return ended_; }
  // Whether it has because the process at the other end did, or has closed it: not because of the network.
  bool is_closed_by_peer() const { return is_closed_by_peer_; }

 private:
  friend class ControlConnection;
  // Of the connection.
  void accept(ControlMessage message);
  void end(const std::string& reason, bool by_peer);
  void tell_reader() const;

  const std::shared_ptr<ControlConnection> connection_;
  const StreamId id_;
  LivenessTask* const reader_;
  bool has_said_goodbye_ = false;
  std::vector<ControlMessage> received_;
  // Of the stream, and whether receive() has told.
  std::optional<std::string> end_, ended_;
  bool is_closed_by_peer_ = false;
};

}  // namespace ccom
