// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "base/types.h"
#include "observe/message_activity.h"

namespace ccom {

inline constexpr Rank kAnyRank = -1;

// The request, validated by the C API.
struct MessageRequest {
  bool sends = false;
  std::byte* data = nullptr;  // read only when sending
  size_t bytes = 0;
  Rank peer = -1;  // or kAnyRank
  int64_t tag = 0;
  uint16_t call_type =
      0;  // 0: a message of the user's; of a send or receive: 1 + its data type, and the tag is its number
  int64_t timeout_ms = 0;
  std::function<void(Code, Rank)> done;  // may be empty
};

class Message;
// A message's place in a list is made when it is posted and moves with it from list to list, because nothing that was
// accepted may get lost when memory runs out: only the first insertion allocates.
using MessageList = std::list<std::shared_ptr<Message>>;

// One end of a message. The thread that holds the progress lock (progress_lock.h) drives it; immutable once complete.
class Message {
 public:
  explicit Message(MessageRequest requested)
      : request(std::move(requested)), deadline(Deadline::after_ms(request.timeout_ms)) {}

  const MessageRequest request;
  const Deadline deadline;

  bool is_complete() const { return is_complete_.load(std::memory_order_seq_cst); }
  // Valid once it is complete. The peer is -1 if none was matched.
  const Status& status() const { return status_; }
  Rank peer() const { return peer_; }

  void complete(Status status, Rank peer) {
    status_ = std::move(status);
    peer_ = peer;
    is_complete_.store(true, std::memory_order_seq_cst);
  }

  MessageEnd own_end() const { return {request.sends, request.peer, request.tag, request.bytes}; }
  mutable MessageActivity::Waited waited;  // who waits is no part of the message

  // In the protocol's list of pending messages.
  MessageList::iterator place{};

 private:
  Status status_;
  Rank peer_ = -1;
  std::atomic<bool> is_complete_{false};
};

// "to rank 3 (tag 7, 1024 bytes)"
std::string text_of(const Message& message);

}  // namespace ccom
