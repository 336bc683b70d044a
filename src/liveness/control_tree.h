// SPDX-License-Identifier: Apache-2.0
//
// Connects a TreeState to the clock and to the streams of one control tree. Used on the liveness thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "liveness/control_link.h"
#include "liveness/state.h"

namespace ccom {

class ControlTree {
 public:
  struct Hooks {
    std::function<void(const Status&)> found;         // every error made here
    std::function<void(const Status&)> report;        // every error received
    std::function<void(const Departure&)> departed;   // every departure received
    std::function<void(const Status&)> lost;          // ranks that were not known to be lost
    std::function<void(Rank, uint64_t rounds)> left;  // a neighbour, in order
  };
  ControlTree(TreeConfig config, Hooks hooks) : state_(std::move(config)), hooks_(std::move(hooks)) {}

  void attach(int host, std::unique_ptr<ControlLink> link, int64_t now_ns);
  // Receives, checks timeouts, sends; returns the time of the next call at the latest.
  int64_t poll(int64_t now_ns);
  void fail(const Status& error);
  void find_lost(const Status& loss, int64_t now_ns);
  // See TreeState.
  void depart(const Departure& departure);
  void poll_stragglers(StragglerReport own, bool tells_activities);
  const StragglerPoll& straggler_poll() const { return state_.straggler_poll(); }
  // Sends a goodbye, after so many rounds of agreement, and closes all streams. Does not block.
  void leave(uint64_t rounds);

 private:
  void receive(int host, ControlLink& link, int64_t now_ns);
  void apply_outputs();

  TreeState state_;
  const Hooks hooks_;
  std::map<int, std::unique_ptr<ControlLink>> links_;  // by host
  TreeOutputs outputs_;
};

}  // namespace ccom
