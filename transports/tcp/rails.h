// SPDX-License-Identifier: Apache-2.0
//
// Which of a channel's lines are in use. Where they join several interfaces ("rails"), a channel outlives the loss of
// all but one: what was on a lost line goes over the others (flights.h), and the receiver takes every fragment once
// (receiver.h).
//
// A line is lost
// - when the other host has owed a response on it for a while, and owes none on another line. If the kernel gets its
//   response after all, which it goes on asking for, the line is in use again;
// - for good when its connection fails: the peer has closed it, or the kernel has given up.
// The last line is never lost: what happens to it is the channel's error, as on channels of one interface. So a dead
// peer, whose lines all fail, is told from a dead rail, and a loss is logged once something has arrived on another
// line; at level warn the first of a rail in this process (lost_rails.h). Guarded by the transport's mutex.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/tcp/line.h"

namespace ccom::tcp {

class Rails {
 public:
  // `limit`: how long a response may be owed; 0: lines may not be lost, each failure is the channel's.
  Rails(const Route& route, std::span<const std::unique_ptr<Line>> lines, std::chrono::milliseconds limit)
      : route_(route), lines_(lines), limit_(limit) {}
  Rails(const Rails&) = delete;
  Rails& operator=(const Rails&) = delete;
  ~Rails();

  // All lines are there. Some may have been lost before they were connected.
  void begin();
  bool fail_over() const { return limit_.count() > 0; }
  std::chrono::milliseconds limit() const { return limit_; }
  // The first line in use: that of the first fragments of messages.
  size_t first() const;
  // The connection has failed. Whether another line goes on. What has arrived on it can still be read.
  bool lose_for_good(size_t i, const std::string& why);
  // Whether a line in use is owed a response.
  bool awaits_answer() const;
  // Something has arrived on a line: the peer lives.
  void confirm() {
    if (!unconfirmed_.empty()) log_losses();
  }
  // An error if the line in use that is left has been silent for `last_limit`. Gives up those that have been for
  // limit(), and takes back those that answer again.
  Status check_silence(std::chrono::milliseconds last_limit);

 private:
  bool has_other(size_t i) const;
  bool answers_elsewhere(size_t i) const;
  void lose(size_t i, const std::string& why);
  void take_back(size_t i);
  void log_losses();
  void log_return(size_t i);
  void say(bool is_new, const std::string& text) const;
  std::string peer_text() const;
  std::string channel_text() const;

  const Route& route_;
  const std::span<const std::unique_ptr<Line>> lines_;
  const std::chrono::milliseconds limit_;
  struct Loss {
    size_t line;
    std::string rail, text;
  };
  std::vector<Loss> unconfirmed_;  // what is to be logged
  std::vector<Loss> logged_;       // of lines that are lost still
};

}  // namespace ccom::tcp
