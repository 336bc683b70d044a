// SPDX-License-Identifier: Apache-2.0
//
// The life of messages: matching, transfer, completion. No threads or locks; Messages adds them.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "messages/matcher.h"
#include "messages/peer_protocol.h"

namespace ccom {

// Used under the progress lock, except wake(). The first error of any function is final, and so is a bad_alloc, which
// any may throw where nothing else is said; afterwards only fail() and refuse() are valid.
class MessageProtocol {
 public:
  explicit MessageProtocol(MessageRoutes routes);

  Status open();
  // Starts the first of `requests`, which leaves the list in any case. Once complete it appears in take_finished().
  Status accept_front(MessageList& requests);
  // Completes all of `requests` with an error without having started them. Allocates nothing.
  void refuse(MessageList& requests, const Status& why);
  // Progresses every transport that has work. Sets has_progressed if anything has happened.
  Status progress(bool& has_progressed);
  // Timeout if a message's deadline has passed.
  Status check_deadlines(Clock::time_point now);
  // Sleeps until progress is possible, wake() is called or at_most has passed. Returns false at once if no transport is
  // in use.
  bool wait(std::chrono::nanoseconds at_most);
  // Thread-safe.
  void wake();
  // Completes all pending messages with this error. Afterwards no buffer is accessed. Allocates nothing.
  void fail(const Status& status);

  // Complete since the last call.
  MessageList take_finished() noexcept { return std::exchange(finished_, {}); }
  bool has_finished() const { return !finished_.empty(); }
  Rank rank() const { return routes_.rank; }
  // Whether messages to and from that rank are possible. Any thread.
  bool reaches(Rank peer) const { return is_self(peer) || routes_.by_peer[static_cast<size_t>(peer)].transport >= 0; }
  bool forwards() const { return routes_.forwarding >= 0; }
  size_t nranks() const { return peers_.size(); }
  // By peer; allocates nothing.
  void count_bytes_sent_to(std::span<uint64_t> bytes) const;
  uint64_t memory_bytes() const;

 private:
  Status accept_send(std::shared_ptr<Message> message);
  Status accept_receive(std::shared_ptr<Message> message);
  Status deliver(Arrival arrival, const std::shared_ptr<Message>& receive);
  Status on_header(PeerProtocol& endpoint, Rank peer);
  Status on_completed(Token token);
  Status on_ended(Token token);
  Status check_departures(Rank peer) const;
  void track(MessageList& requests) noexcept;
  void complete(const std::shared_ptr<Message>& message, Status status, Rank peer) noexcept;
  Status peer_left(Rank peer, const std::string& what) const;
  bool is_busy(size_t transport) const {
    return work_[transport] > 0 || any_source_ > 0 || static_cast<int>(transport) == routes_.forwarding;
  }
  bool is_self(Rank peer) const { return peer == routes_.rank; }

  const MessageRoutes routes_;
  std::deque<PeerProtocol> peers_;  // by peer
  Matcher matcher_;
  Events events_;
  std::vector<size_t> work_;  // pending messages, by transport
  size_t any_source_ = 0;     // pending receives from any rank
  MessageList pending_;
  Clock::time_point earliest_ = Clock::time_point::max();  // no deadline is earlier
  MessageList finished_;
};

}  // namespace ccom
