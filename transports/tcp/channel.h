// SPDX-License-Identifier: Apache-2.0
//
// A channel: its lines, and one Sender and one Receiver over them.
#pragma once

#include <memory>
#include <vector>

#include "transports/tcp/receiver.h"
#include "transports/tcp/sender.h"

namespace ccom::tcp {

class TcpChannel;

// What the channels of one transport share with it. Belongs to its thread.
struct Shared {
  explicit Shared(size_t grid) : pool(grid) {}
  Status failure;                   // the first; final
  std::vector<TcpChannel*> active;  // with something posted
  std::vector<Token> completed;     // inside post_*, for the next progress()
  bool may_progress = false;        // something was posted that needs no news from the network
  BufferPool pool;
};

class TcpChannel final : public Channel {
 public:
  // How many lines there will be must be said in advance: sender and receiver refer to them.
  TcpChannel(Route route, size_t streams, bool crc, Shared& shared);
  TcpChannel(const TcpChannel&) = delete;
  TcpChannel& operator=(const TcpChannel&) = delete;

  Status post_send(const Send& send) override;
  Status post_receive(const Receive& receive) override;

  void set_line(size_t stream, std::unique_ptr<Line> line) { lines_[stream] = std::move(line); }
  const std::vector<std::unique_ptr<Line>>& lines() const { return lines_; }
  bool is_idle() const { return sender_.is_idle() && receiver_.is_idle(); }
  // See Sender::pump and Receiver::pump.
  Status pump(bool ask_first, Events& events);
  // Before sleeping: arms every line that something posted waits for, or says in Shared that there is something to do
  // already. An error if it would wait in vain.
  Status arm_all();
  // An error if the peer's host has answered nothing on one of the lines for so long.
  Status check_silence(std::chrono::milliseconds limit);
  void deactivate() { is_active_ = false; }
  // Forgets what is posted.
  void clear();
  // After clear(), once per line: says that nothing follows; the descriptor and how many bytes may stay unacknowledged,
  // its end of stream included, when everything that was reported complete has arrived.
  struct Rest {
    int fd;
    size_t unpromised_bytes;
  };
  Rest end_output(size_t i);
  uint64_t memory_bytes() const;

 private:
  void activate();

  const Route route_;
  Shared& shared_;
  std::vector<std::unique_ptr<Line>> lines_;  // by stream
  Sender sender_;
  Receiver receiver_;
  bool is_active_ = false;  // in shared_.active
};

}  // namespace ccom::tcp
