// SPDX-License-Identifier: Apache-2.0
//
// How every TCP listener of ccom accepts: the kernel keeps connections that say nothing, or begin with something else
// (base/greeting.h), as far as it can. All others stay here until their whole first message has arrived, so who says
// too little costs a descriptor and some hundred bytes, delays nobody, and never reaches a protocol. Dropped: who says
// something else, who has closed, who takes longer than two seconds, and the oldest one when there are too many or when
// the process has no free descriptors. A peer that was dropped connects again.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/descriptor.h"
#include "base/greeting.h"
#include "base/status.h"
#include "base/time.h"
#include "base/types.h"

namespace ccom {

// Used by one thread.
class UnprovedConnections {
 public:
  static constexpr size_t kHeadBytes = 8;  // what Greeting::measure sees at most

  static Result<UnprovedConnections> create(const Greeting& greeting);

  // A listening, non-blocking socket, which must stay open until remove_listeners() or the end.
  Status add_listener(int socket);
  void remove_listeners();

  // The next connection whose first message can be read, non-blocking and close-on-exec; not open if there is none now.
  // To be called when fd() is readable or wait_ms() have passed, until there is none.
  Descriptor next();
  int fd() const { return events_.get(); }
  int wait_ms() const;  // -1: until fd() is readable

  size_t refused() const { return refused_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  using Number = uint64_t;  // in the order of arrival
  struct Waiting {
    Descriptor socket;
    Deadline deadline;
  };
  enum class State { Incomplete, Complete, Wrong };

  UnprovedConnections(const Greeting& greeting, Descriptor events);
  State look_at(int socket) const;
  void look_again(Number number);
  void accept_from(int listener);
  bool make_room();
  void drop_late();
  void listen_again();
  void set_listening(bool on);

  Greeting greeting_;
  Descriptor events_;  // epoll
  size_t most_waiting_;
  std::vector<int> listeners_;
  std::map<Number, Waiting> waiting_;
  std::deque<Descriptor> complete_;
  Number next_number_;
  Deadline pause_ = Deadline::after_ms(0);
  bool is_paused_ = false;
  size_t refused_ = 0;
};

}  // namespace ccom
