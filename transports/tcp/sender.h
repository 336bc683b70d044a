// SPDX-License-Identifier: Apache-2.0
//
// The sending direction of a channel: splits queued messages into fragments, which writable lines pull.
//
// Invariants: queue_ holds the messages that are not reported complete, in order; fragments are pulled in order, so
// message numbers do not decrease on a line, but after the loss of another one; completions are reported in order. A
// message is complete when all its bytes are in the kernel, and, where lines may be lost (rails.h), are either
// acknowledged or copied (flights.h). Guarded by the transport's mutex.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "transports/tcp/flights.h"
#include "transports/tcp/line.h"
#include "transports/tcp/rails.h"
#include "transports/tcp/wire.h"

namespace ccom::tcp {

class Sender {
 public:
  Sender(const Route& route, std::span<const std::unique_ptr<Line>> lines, Rails& rails, size_t grid, bool crc);

  Status post(const Send& send);
  // Some messages are not reported complete.
  bool has_posted() const { return !queue_.empty(); }
  // Nothing is left to be written, nor waits to be acknowledged.
  bool is_idle() const { return queue_.empty() && flights_.is_empty(); }
  bool has_flights() const { return !flights_.is_empty(); }
  // Whether line `i` has data to write.
  bool wants(size_t i) const;
  // Whether nothing but acknowledgements, of which no event tells, completes the next message.
  bool awaits_acknowledgements() const;
  // Writes what the kernel accepts, at most a few fragments. With `ask_first`, skips armed lines and arms full ones.
  Status pump(bool ask_first, std::vector<Token>& completed);
  // The same while nobody makes progress: goes on with what lost lines have carried. What is complete is forgotten if
  // the peer has closed all lines.
  Status care(std::vector<Token>& completed);
  // A full line does not always fail at once when its peer is gone.
  Status check_hang_up();
  // Drops all posted operations.
  void clear();
  // After clear(): how many of the last bytes written to line `i` belong to messages not reported complete, or have
  // gone by another line.
  size_t abandoned_bytes(size_t i) const { return abandoned_bytes_[i]; }

 private:
  // The fragment being sent on a line.
  struct Outbound {
    bool is_busy = false;
    Fragment fragment;
    size_t written_bytes = 0;             // of header and payload
    std::vector<std::byte> rest;          // of one that was lost with the line: goes first if that comes back
    uint64_t last_number = ~uint64_t{0};  // the message last sent on this line ...
    uint64_t last_begin = 0;              // ... and the line's sent_bytes before it
  };
  enum class Step { Written, Full, Failed };

  bool can_pull(size_t i) const;
  void pull(size_t i);
  Fragment next_fragment();
  Step write(size_t i);
  Step write_rest(size_t i);
  Step taken(ssize_t sent, size_t wanted);
  Status pump_lines(bool ask_first, bool& is_full);
  Status lose(size_t i);
  void hand_back_lost();
  bool settle_line(size_t i);
  void settle();
  void retire(std::vector<Token>& completed);

  const Route& route_;
  const std::span<const std::unique_ptr<Line>> lines_;
  Rails& rails_;
  const size_t grid_;
  const bool crc_;
  std::deque<Outgoing> queue_;  // pointers into it stay valid: changed only at its ends
  size_t first_unpulled_ = 0;   // index of the first message with fragments left to pull
  uint64_t next_number_ = 0;
  std::vector<Outbound> outbound_;       // per line
  std::vector<size_t> abandoned_bytes_;  // per line
  Flights flights_;                      // empty unless lines may be lost
  unsigned full_pumps_ = 0, pumps_ = 0;
  int write_errno_ = 0;
};

}  // namespace ccom::tcp
