// SPDX-License-Identifier: Apache-2.0
#include "sim/timed_plan.h"

#include "plan/fingerprint.h"

namespace ccom {
namespace {

TimedStep timed_step(const Step& step, uint64_t bytes) {
  uint64_t read = 0;
  if (step.kind == StepKind::Copy || step.kind == StepKind::Permute) read = bytes;
  if (step.kind == StepKind::ReceiveReduce) read = 2 * bytes;
  if (step.kind == StepKind::Reduce) read = step.inputs * bytes;
  return {bytes, read, step.kind};
}

uint64_t hash_of(const TimedPlan& plan) {
  uint64_t hash = plan.steps.size();
  for (const TimedStep& step : plan.steps) {
    hash = mix(hash ^ step.bytes << 3 ^ static_cast<uint64_t>(step.kind));
  }
  for (const auto* list : {&plan.dependencies.waits_for, &plan.dependencies.successors,
                           &plan.dependencies.next_on_channel, &plan.dependencies.first_successor}) {
    for (const uint32_t value : *list) hash = mix(hash ^ value);
  }
  return hash;
}

bool same(const TimedPlan& a, const TimedPlan& b) {
  return a.steps == b.steps && a.dependencies.waits_for == b.dependencies.waits_for &&
         a.dependencies.successors == b.dependencies.successors &&
         a.dependencies.first_successor == b.dependencies.first_successor &&
         a.dependencies.next_on_channel == b.dependencies.next_on_channel;
}

}  // namespace

std::shared_ptr<const TimedPlan> TimedPlans::of(const Plan& plan, const StepBytes& bytes_of) {
  auto timed = std::make_shared<TimedPlan>();
  timed->steps.reserve(plan.steps.size());
  for (const Step& step : plan.steps) timed->steps.push_back(timed_step(step, bytes_of(step)));
  timed->dependencies = derive_dependencies(plan);
  timed->algorithm = plan.algorithm;
  const uint64_t hash = hash_of(*timed);
  const auto [first, last] = known_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (same(*at->second, *timed)) return at->second;
  }
  known_.emplace(hash, timed);
  return timed;
}

}  // namespace ccom
