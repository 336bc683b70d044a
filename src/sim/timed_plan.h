// SPDX-License-Identifier: Apache-2.0
//
// Room-private: a plan as the clock needs it. Ranks whose plans differ only in who the peers are share one, which is
// what lets ten thousand ranks fit into memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/dependencies.h"
#include "plan/executor.h"
#include "plan/plan.h"

namespace ccom {

// What a step is besides its peer.
struct TimedStep {
  uint64_t bytes = 0;          // that it moves
  uint64_t reduced_bytes = 0;  // that it reads to reduce or to copy
  StepKind kind = StepKind::Copy;
  friend bool operator==(const TimedStep&, const TimedStep&) = default;
};

struct TimedPlan {
  std::vector<TimedStep> steps;
  Dependencies dependencies;
  std::string algorithm;
};

// Bytes of a step of a plan.
using StepBytes = std::function<uint64_t(const Step&)>;

// Keeps one of each kind.
class TimedPlans {
 public:
  std::shared_ptr<const TimedPlan> of(const Plan& plan, const StepBytes& bytes_of);
  size_t count() const { return known_.size(); }

 private:
  std::unordered_multimap<uint64_t, std::shared_ptr<const TimedPlan>> known_;
};

}  // namespace ccom
