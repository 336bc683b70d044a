// SPDX-License-Identifier: Apache-2.0
//
// Connects a TreeState to the clock and to the sockets of one control tree. Used on the liveness thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "liveness/control_link.h"
#include "liveness/liveness_thread.h"
#include "liveness/state.h"

namespace ccom {

class ControlTree {
 public:
  // report: called with every error detected or received; departed: with every departure received that is the first so
  // far.
  ControlTree(TreeConfig config, LivenessThread& thread, std::function<void(const Status&)> report,
              std::function<void(const Departure&)> departed)
      : state_(std::move(config)), thread_(thread), report_(std::move(report)), departed_(std::move(departed)) {}

  void attach(int host, std::unique_ptr<ControlLink> link, int64_t now_ns);
  // Receives, checks timeouts, sends; returns the time of the next call at the latest.
  int64_t poll(int64_t now_ns);
  void fail(const Status& error);
  // See TreeState.
  void depart(const Departure& departure);
  void poll_stragglers(StragglerReport own);
  const StragglerPoll& straggler_poll() const { return state_.straggler_poll(); }
  // Sends a goodbye and closes all connections. Does not block.
  void leave();

 private:
  void receive(int host, ControlLink& link, int64_t now_ns);
  void drop_ended();
  void apply_outputs();

  TreeState state_;
  LivenessThread& thread_;
  std::function<void(const Status&)> report_;
  std::function<void(const Departure&)> departed_;
  std::map<int, std::unique_ptr<ControlLink>> links_;  // by host
  TreeOutputs outputs_;
};

}  // namespace ccom
