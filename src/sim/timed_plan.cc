// SPDX-License-Identifier: Apache-2.0
#include "sim/timed_plan.h"

#include "plan/fingerprint.h"
#include "plan/partition.h"

namespace ccom {
namespace {

template <typename Bytes>
std::vector<TimedStep> timed_steps(const Plan& plan, Bytes bytes_of) {
  std::vector<TimedStep> steps;
  steps.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    const uint64_t bytes = bytes_of(step);
    uint64_t read = 0;
    if (step.kind == StepKind::Copy) read = bytes;
    if (step.kind == StepKind::ReceiveReduce) read = 2 * bytes;
    if (step.kind == StepKind::Reduce) read = step.inputs * bytes;
    steps.push_back({bytes, read, step.kind});
  }
  return steps;
}

uint64_t hash_of(const TimedPlan& timed) {
  uint64_t hash = timed.steps.size();
  for (const TimedStep& step : timed.steps) {
    hash = mix(hash ^ step.bytes << 3 ^ static_cast<uint64_t>(step.kind));
  }
  for (const auto* list : {&timed.dependencies.waits_for, &timed.dependencies.successors,
                           &timed.dependencies.next_on_channel, &timed.dependencies.first_successor}) {
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

std::shared_ptr<const TimedPlan> TimedPlans::of(const Plan& plan) {
  const size_t elements = unit_bytes_ / element_bytes_;
  const Partition partition(elements, plan.blocks_per_unit, element_bytes_);
  auto timed = std::make_shared<TimedPlan>();
  const double mean = static_cast<double>(unit_bytes_) / plan.blocks_per_unit;
  timed->steps = timed_steps(plan, [&](const Step& step) {
    return equal_blocks_ ? static_cast<uint64_t>(mean * step.count + 0.5)
                         : partition.elements(step.block, step.count) * element_bytes_;
  });
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
