// SPDX-License-Identifier: Apache-2.0
//
// The receiving direction of a channel: reads fragments from the lines, validates them against the posted receives and
// delivers their payload.
//
// Invariants: queue_ holds the incomplete receives, the front one for message front_number_; a line is read only while
// a posted receive may get data from it, otherwise the data stays in the kernel; no byte is delivered before its header
// is validated, none to a Sink before its checksum is; completions are reported in order. Guarded by the transport's
// mutex.
//
// Where lines may be lost (rails.h), a fragment may come twice. Both are read; the first that is complete counts, and
// the other, and what comes of it later, is thrown away. A lost line is read as long as it has something. What was sent
// again may stand behind messages that nobody has posted a receive for: if nothing else moves for a while, those are
// read, too, and kept (early_).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/tcp/buffer_pool.h"
#include "transports/tcp/line.h"
#include "transports/tcp/rails.h"
#include "transports/tcp/wire.h"

namespace ccom::tcp {

class Receiver {
 public:
  Receiver(const Route& route, std::span<const std::unique_ptr<Line>> lines, Rails& rails, size_t grid, bool crc,
           BufferPool& pool);

  void post(const Receive& receive) { queue_.push_back({.receive = receive}); }
  bool is_idle() const { return queue_.empty(); }
  // Whether buffered input is available for the next pump.
  bool has_read_ahead() const;
  // Whether a posted receive waits for data from line `i`.
  bool wants(size_t i) const;
  // Reads available data, at most a few fragments. With `ask_first`, skips armed lines and arms those without data.
  // Errors and mismatches are final.
  Status pump(bool ask_first, Events& events);
  void clear();
  uint64_t memory_bytes() const;

 private:
  struct Message {
    Receive receive;
    bool has_begun = false;
    size_t arrived_fragments = 0;
    std::vector<bool> arrived{};  // by fragment; empty at first, and for a single one
  };
  // The fragment being received on a line, and bytes read ahead of it.
  struct Inbound {
    std::unique_ptr<std::byte[]> ahead;  // allocated on first use
    size_t begin = 0, end = 0;           // the unused part of `ahead`
    std::optional<FragmentHeader> header;
    Message* message = nullptr;  // of the fragment; null until posted, and where there is another use:
    enum class Use { Deliver, Keep, Drop } use = Use::Deliver;
    size_t arrived_bytes = 0;  // of the payload
    uint32_t crc = 0;
    BufferPool::Buffer gathered;  // where it does not go to the receive's target
    uint64_t last_number = 0;
    ConstBytes unused() const { return {ahead.get() + begin, end - begin}; }
  };
  // A fragment of a message that nobody has posted a receive for.
  struct Early {
    FragmentHeader header;
    std::unique_ptr<std::byte[]> payload;
  };
  // Result of read(): data, none now, or end of stream.
  enum class Read { Some, Dry, Ended };

  size_t ahead_bytes_of(size_t line) const;
  bool is_worth_reading(size_t i) const;
  Status pump_lines(bool ask_first);
  Status end(Events& events);
  bool has_ended() const;
  Status pump_line(size_t i, bool& is_dry);
  Result<Read> read(size_t i, Bytes wanted, size_t ahead_bytes, size_t& got_bytes);
  Result<Read> read_header(size_t i);
  bool is_small_next(size_t i) const;
  Status accept_header(size_t i);
  Status match(size_t i);
  Result<Message*> find(const FragmentHeader& header);
  bool has_arrived(const Message& message, const FragmentHeader& header) const;
  Status gather(Inbound& in, Inbound::Use use);
  Result<Read> read_payload(size_t i);
  Result<Read> cut_off(size_t i, int number);
  std::byte* destination(Inbound& in) const;
  Status finish(size_t i);
  Status deliver(Message& message, const FragmentHeader& header);
  void retire();
  bool is_blocked(const Inbound& in) const;
  Status keep_what_blocks();
  Status keep(Inbound& in);
  Status deliver_early();
  Status deliver_one(const Early& early);
  Status broken(const Inbound& in, const char* what) const;
  Status damaged(const std::string& what) const;

  const Route& route_;
  const std::span<const std::unique_ptr<Line>> lines_;
  Rails& rails_;
  const size_t grid_;
  const bool crc_;
  BufferPool& pool_;
  std::deque<Message> queue_;  // pointers into it stay valid: changed only at its ends
  uint64_t front_number_ = 0;
  std::vector<Inbound> inbound_;  // per line
  size_t opening_ = 0;            // the line on which the last first fragment of a message has come
  unsigned pumps_ = 0;
  uint64_t moved_ = 0;                 // fragments that were delivered
  uint64_t seen_moved_ = 0;            // the last time that something blocked ...
  Clock::time_point blocked_since_{};  // ... since when nothing has moved
  bool had_ended_ = false;
  std::deque<Early> early_;
  size_t early_bytes_ = 0;
  std::optional<Mismatch> mismatch_;
  std::vector<Token> retired_;
};

}  // namespace ccom::tcp
