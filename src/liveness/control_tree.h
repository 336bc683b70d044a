// SPDX-License-Identifier: Apache-2.0
//
// One control tree in the real world: drives a TreeState with the clock and the connections. On the liveness thread
// only.
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
  // `report` is told of an error that was found or received.
  ControlTree(TreeConfig config, LivenessThread& thread, std::function<void(const Status&)> report)
      : state_(std::move(config)), thread_(thread), report_(std::move(report)) {}

  void attach(int host, std::unique_ptr<ControlLink> link, int64_t now_ns);
  // Receives, judges, sends; returns when to come back at the latest.
  int64_t turn(int64_t now_ns);
  void fail(const Status& error);
  // See TreeState.
  void poll_stragglers(StragglerReport own);
  const StragglerPoll& straggler_poll() const { return state_.straggler_poll(); }
  // Says goodbye and closes everything. Does not block.
  void leave();

 private:
  void receive(int host, ControlLink& link, int64_t now_ns);
  void drop_ended();
  void carry_out();

  TreeState state_;
  LivenessThread& thread_;
  std::function<void(const Status&)> report_;
  std::map<int, std::unique_ptr<ControlLink>> links_;  // by host
  TreeOutputs outputs_;
};

}  // namespace ccom
