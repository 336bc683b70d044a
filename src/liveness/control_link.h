// SPDX-License-Identifier: Apache-2.0
//
// An authenticated stream of messages to one neighbour, over a TCP connection whose handshake is done.
//
// Frame: {type u8, 3 zero bytes, payload size u32, payload, 16 bytes of HMAC(direction's key, counter header payload)}.
// The counter makes every frame's code its own, so nothing can be forged, replayed, reordered or left out in the
// middle. A size is compared with ours (kMaxErrorBytes) before anything is done with it.
//
// Non-blocking; belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "liveness/handshake.h"
#include "liveness/message.h"
#include "liveness/sockets.h"

namespace ccom {

class ControlLink {
 public:
  ControlLink(OwnedFd socket, LinkKeys keys) : socket_(std::move(socket)), keys_(std::move(keys)) {}
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  int fd() const { return socket_.get(); }
  // Sends now what fits; the rest with the next send() or flush(). A heartbeat is skipped while something is still
  // waiting.
  void send(const ControlMessage& message);
  void flush();
  bool has_unsent() const { return !unsent_.empty(); }
  // Appends what has arrived. Afterwards ended() may say that no more will come.
  void receive(std::vector<ControlMessage>& messages);
  // The reason why the stream is over.
  const std::optional<std::string>& ended() const { return ended_; }
  // After the last send: the peer gets everything that was sent, then the end of the stream.
  void finish();

  bool readable = false;  // set by whoever polls fd()

 private:
  size_t parse(std::vector<ControlMessage>& messages);
  Mac frame_mac(const Secret& key, uint64_t counter, ConstBytes frame) const;
  void end(std::string reason);

  OwnedFd socket_;
  LinkKeys keys_;
  uint64_t sent_ = 0, received_ = 0;  // frames
  std::vector<std::byte> unsent_, unparsed_;
  std::optional<std::string> ended_;
};

}  // namespace ccom
