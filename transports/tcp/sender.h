// SPDX-License-Identifier: Apache-2.0
//
// The sending direction of a channel: splits queued messages into fragments, which writable lines pull.
//
// Invariants: queue_ holds the incomplete messages in order; fragments are pulled in order, so message numbers never
// decrease on a line; a message is complete when all its bytes are in the kernel; completions are reported in order.
// Used by the transport's thread.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "transports/tcp/line.h"
#include "transports/tcp/wire.h"

namespace ccom::tcp {

class Sender {
 public:
  Sender(const Route& route, std::span<const std::unique_ptr<Line>> lines, size_t grid, bool crc);

  Status post(const Send& send);
  bool is_idle() const { return queue_.empty(); }
  // Whether line `i` has data to write.
  bool wants(size_t i) const { return outbound_[i].message != nullptr || can_pull(i); }
  // Writes what the kernel accepts, at most a few fragments. With `ask_first`, skips armed lines and arms full ones.
  Status pump(bool ask_first, std::vector<Token>& completed);
  // A full line does not always fail at once when its peer is gone.
  Status check_hang_up();
  // Drops all posted operations.
  void clear();
  // After clear(): how many of the last bytes written to line `i` belong to messages not reported complete.
  size_t abandoned_bytes(size_t i) const { return abandoned_bytes_[i]; }

 private:
  struct Message {
    Send send;
    uint64_t number = 0;
    size_t pulled_fragments = 0;
    size_t written_fragments = 0;
    size_t fragments = 1;
  };
  // The fragment being sent on a line.
  struct Outbound {
    Message* message = nullptr;
    FragmentHeader header;
    ConstBytes payload;
    size_t written_bytes = 0;             // of header and payload
    uint64_t last_number = ~uint64_t{0};  // the message last sent on this line ...
    uint64_t last_begin = 0;              // ... and the line's sent_bytes before it
  };
  enum class Step { Written, Full, Failed };

  bool can_pull(size_t i) const;
  void pull(size_t i);
  Step write(size_t i);
  void retire(std::vector<Token>& completed);

  const Route& route_;
  const std::span<const std::unique_ptr<Line>> lines_;
  const size_t grid_;
  const bool crc_;
  std::deque<Message> queue_;  // pointers into it stay valid: changed only at its ends
  size_t first_unpulled_ = 0;  // index of the first message with fragments left to pull
  uint64_t next_number_ = 0;
  std::vector<Outbound> outbound_;       // per line
  std::vector<size_t> abandoned_bytes_;  // per line
  unsigned full_pumps_ = 0;
  int write_errno_ = 0;
};

}  // namespace ccom::tcp
