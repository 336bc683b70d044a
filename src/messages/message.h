// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "base/types.h"

namespace ccom {

inline constexpr Rank kAnyRank = -1;

// What was asked for, as checked by the C border.
struct MessageRequest {
  bool sends = false;
  std::byte* data = nullptr;  // only read if it is to be sent
  size_t bytes = 0;
  Rank peer = -1;  // or kAnyRank
  int64_t tag = 0;
  int64_t timeout_ms = 0;
  std::function<void(Code, Rank)> done;  // may be empty
};

// One end of a message. Whoever holds the progress lock (progress lock.h) drives it to its end; then it is immutable.
class Message {
 public:
  explicit Message(MessageRequest request)
      : asked(std::move(request)), deadline(Deadline::after_ms(asked.timeout_ms)) {}

  const MessageRequest asked;
  const Deadline deadline;

  bool is_complete() const { return is_complete_.load(std::memory_order_seq_cst); }
  // Valid once it is complete. The peer is -1 if none was found.
  const Status& status() const { return status_; }
  Rank peer() const { return peer_; }

  void complete(Status status, Rank peer) {
    status_ = std::move(status);
    peer_ = peer;
    is_complete_.store(true, std::memory_order_seq_cst);
  }

  // Where it stands in the list of those under way.
  size_t place = 0;

 private:
  Status status_;
  Rank peer_ = -1;
  std::atomic<bool> is_complete_{false};
};

// "to rank 3 (tag 7, 1024 bytes)"
std::string text_of(const Message& message);

}  // namespace ccom
