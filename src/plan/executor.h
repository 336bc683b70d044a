// SPDX-License-Identifier: Apache-2.0
//
// The interpreter of plans: the only code that knows "step ready" and "step done". No clock, no threads, no I/O.
//
// A world (the engine's transports, the simulator's clock, the verifier's symbols) starts the steps that it is given
// and reports each one when it is done; the executor answers which may start now. Steps that a call appends to `ready`
// must be started in that order.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/dependencies.h"

namespace ccom {

// Belongs to one thread. Reusable: start() begins anew without allocating.
class Executor {
 public:
  // `dependencies` outlives the executor.
  explicit Executor(const Dependencies& dependencies) : dependencies_(&dependencies) {}

  void start(std::vector<uint32_t>& ready) {
    waits_for_ = dependencies_->waits_for;
    left_ = waits_for_.size();
    // In the order of the program over all channels: those it names first are to have the wires first.
    for (uint32_t s = 0; s < waits_for_.size(); ++s) {
      if (waits_for_[s] > 0) continue;
      ready.push_back(s);
      const uint32_t next = dependencies_->next_on_channel[s];
      if (next != Dependencies::kNone) --waits_for_[next];
    }
  }

  void done(uint32_t step, std::vector<uint32_t>& ready) {
    --left_;
    for (const uint32_t successor : dependencies_->successors_of(step)) release(successor, ready);
  }

  bool finished() const { return left_ == 0; }

 private:
  void release(uint32_t step, std::vector<uint32_t>& ready) {
    if (--waits_for_[step] == 0) make_ready(step, ready);
  }
  // Started steps let the next one of their channel start.
  void make_ready(uint32_t step, std::vector<uint32_t>& ready) {
    ready.push_back(step);
    for (uint32_t next = dependencies_->next_on_channel[step]; next != Dependencies::kNone && --waits_for_[next] == 0;
         next = dependencies_->next_on_channel[next]) {
      ready.push_back(next);
    }
  }

  const Dependencies* dependencies_;
  std::vector<uint32_t> waits_for_;
  size_t left_ = 0;
};

}  // namespace ccom
