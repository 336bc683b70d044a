// SPDX-License-Identifier: Apache-2.0
//
// What becomes of messages: matched, moved, completed. Knows nothing of threads; Messages does.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "messages/matcher.h"
#include "messages/peer_protocol.h"

namespace ccom {

// Belongs to whoever holds the progress lock, but for wake(). The first error of any function is final: then only fail() is left.
class MessageProtocol {
 public:
  explicit MessageProtocol(MessageRoutes routes);

  Status open();
  // A message is asked for. It is complete once it is among the finished ones.
  Status accept(std::shared_ptr<Message> message);
  // Not taken on.
  void refuse(const std::shared_ptr<Message>& message, const Status& why);
  // Lets every transport with work move. has_moved: set if something has happened.
  Status move(bool& has_moved);
  // Timeout if a message is late.
  Status check_deadlines(Clock::time_point now);
  // Sleeps until move() may find something, wake() is called or the time is up. False, at once, if there is nothing to
  // sleep on.
  bool wait(std::chrono::nanoseconds at_most);
  // Thread-safe.
  void wake();
  // Everything under way is complete with this error. No buffer is touched any more.
  void fail(const Status& status);

  // Complete since the last call.
  std::vector<std::shared_ptr<Message>> take_finished() { return std::exchange(finished_, {}); }
  bool has_finished() const { return !finished_.empty(); }
  std::vector<uint64_t> bytes_sent_to() const;
  uint64_t memory_bytes() const;

 private:
  Status accept_send(std::shared_ptr<Message> message);
  Status accept_receive(std::shared_ptr<Message> message);
  Status deliver(Arrival arrival, const std::shared_ptr<Message>& receive);
  Status take_header(PeerProtocol& line, Rank peer);
  Status on_completed(Token token);
  Status on_ended(Token token);
  Status check_left(Rank peer) const;
  void track(const std::shared_ptr<Message>& message);
  void complete(const std::shared_ptr<Message>& message, Status status, Rank peer);
  Status gone(Rank peer, const std::string& what) const;
  bool is_busy(size_t transport) const { return work_[transport] > 0 || any_source_ > 0; }
  bool is_self(Rank peer) const { return peer == routes_.rank; }

  const MessageRoutes routes_;
  std::deque<PeerProtocol> lines_;  // by peer
  Matcher matcher_;
  Events events_;
  std::vector<size_t> work_;  // messages under way, by transport
  size_t any_source_ = 0;     // receives from any rank under way
  std::vector<std::shared_ptr<Message>> under_way_;
  Clock::time_point earliest_ = Clock::time_point::max();  // no deadline is before it
  std::vector<std::shared_ptr<Message>> finished_;
};

}  // namespace ccom
