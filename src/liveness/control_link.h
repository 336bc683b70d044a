// SPDX-License-Identifier: Apache-2.0
//
// An authenticated message stream to one neighbour, over a TCP connection after the handshake.
//
// Frame: {type u8, 3 zero bytes, payload size u32, payload, 16 bytes of HMAC(key of the direction, counter || header ||
// payload)}. The counter protects against replay, reordering and omission. The size is checked against kMostFrameBytes
// first. With CCOM_TLS=1 frames travel inside TLS.
//
// Non-blocking; belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "liveness/liveness_thread.h"
#include "liveness/message.h"
#include "liveness/sockets.h"

namespace ccom {

struct LinkKeys {
  Secret send, receive;
};

class ControlLink {
 public:
  // Of the payload: messages of agreement have two bytes for each rank, and there are at most 2^17.
  static constexpr size_t kMostFrameBytes = size_t{1} << 18;

  ControlLink(ControlSocket socket, LinkKeys keys) : socket_(std::move(socket)), keys_(std::move(keys)) {}
  ControlLink(Descriptor socket, LinkKeys keys) : ControlLink(ControlSocket(std::move(socket)), std::move(keys)) {}
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  int fd() const { return socket_.fd(); }
  // Sends what the socket takes; the rest follows with the next send() or flush(). A heartbeat is dropped while data is
  // unsent.
  void send(const ControlMessage& message);
  void flush();
  bool has_unsent() const { return !unsent_.empty(); }
  // Appends received messages. Check ended() afterwards.
  void receive(std::vector<ControlMessage>& messages);
  // Why the stream has ended, if it has.
  const std::optional<std::string>& ended() const { return ended_; }
  // Whether it has because the process at the other end did, or has closed it: not because of the network.
  bool is_closed_by_peer() const { return is_closed_by_peer_; }
  // Shuts the stream down after the last send: the peer receives everything, then the end of the stream.
  void finish();

  Readable readable;  // set by the poller of fd()

 private:
  size_t parse(std::vector<ControlMessage>& messages);
  Mac frame_mac(const Secret& key, uint64_t counter, ConstBytes frame) const;
  void end(std::string reason);

  ControlSocket socket_;
  LinkKeys keys_;
  uint64_t sent_ = 0, received_ = 0;  // frames
  std::vector<std::byte> unsent_, unparsed_;
  std::optional<std::string> ended_;
  bool is_closed_by_peer_ = false;
};

}  // namespace ccom
