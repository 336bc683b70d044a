// SPDX-License-Identifier: Apache-2.0
#include "plan/checks.h"

#include "plan/print.h"

namespace ccom {

Status defect(const Plan& plan, size_t step, const char* rule) {
  return error(Code::InternalError, "%s %s, rank %d, step %zu (%s): %s", std::string(name_of(plan.collective)).c_str(),
               plan.algorithm.c_str(), plan.rank, step,
               step < plan.steps.size() ? to_text(plan.steps[step]).c_str() : "end", rule);
}

namespace {

bool in_range(const Plan& plan, Buffer buffer, uint64_t first, uint64_t count) {
  const uint64_t size = buffer == Buffer::Input    ? plan.input_blocks()
                        : buffer == Buffer::Output ? plan.output_blocks()
                                                   : plan.scratch_slots;
  return first + count <= size;
}

// A run's length is that of the partition's blocks [block, ...): user runs must start there, modulo units (which are
// of equal length), scratch runs must not cross a unit's end unless units have one block.
bool run_fits(const Plan& plan, const Step& step, Buffer buffer, uint32_t first) {
  const uint32_t unit = plan.blocks_per_unit;
  if (buffer != Buffer::Scratch) return first % unit == step.block % unit;
  return unit == 1 || step.block % unit + step.count <= unit;
}

Status check_step(const Plan& plan, size_t index) {
  const Step& step = plan.steps[index];
  if (step.count == 0) return defect(plan, index, "it moves no blocks");
  if (step.is_transfer() && (step.peer < 0 || step.peer >= plan.nranks || step.peer == plan.rank)) {
    return defect(plan, index, "its peer does not exist or is the rank itself");
  }
  if (step.kind == StepKind::Reduce && (step.inputs < 2 || step.source_buffer != Buffer::Scratch)) {
    return defect(plan, index, "a reduce takes two or more runs of scratch");
  }
  if (step.reads_source()) {
    if (!in_range(plan, step.source_buffer, step.source, step.source_count())) {
      return defect(plan, index, "its source is out of range");
    }
    if (!run_fits(plan, step, step.source_buffer, step.source))
      return defect(plan, index, "its source has another length");
  }
  if (step.writes_target()) {
    if (step.target_buffer == Buffer::Input) return defect(plan, index, "it writes to the input");
    if (!in_range(plan, step.target_buffer, step.target, step.count)) {
      return defect(plan, index, "its target is out of range");
    }
    if (!run_fits(plan, step, step.target_buffer, step.target))
      return defect(plan, index, "its target has another length");
  }
  return {};
}

// For each step the set of steps that are done before it starts, by dependencies alone.
std::vector<std::vector<uint64_t>> ancestors(const Dependencies& dependencies) {
  const size_t steps = dependencies.waits_for.size();
  const size_t words = (steps + 63) / 64;
  std::vector<std::vector<uint64_t>> before(steps, std::vector<uint64_t>(words));
  for (uint32_t s = 0; s < steps; ++s) {  // program order is a topological order
    for (const uint32_t successor : dependencies.successors_of(s)) {
      for (size_t w = 0; w < words; ++w) before[successor][w] |= before[s][w];
      before[successor][s / 64] |= uint64_t{1} << (s % 64);
    }
  }
  return before;
}

}  // namespace

Status check_races(const Plan& plan, const Dependencies& dependencies) {
  const auto before = ancestors(dependencies);
  const auto ordered = [&before](uint32_t early, uint32_t late) {
    return (before[late][early / 64] >> (early % 64) & 1) != 0;
  };
  struct Touch {
    uint32_t step;
    bool write;
  };
  const Cells cells(plan);
  std::vector<std::vector<Touch>> touches(cells.count());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.reads_source()) {
      for (uint32_t i = 0; i < step.source_count(); ++i) {
        touches[cells.of(step.source_buffer, step.source + i)].push_back({s, false});
      }
    }
    if (step.writes_target()) {
      for (uint32_t i = 0; i < step.count; ++i) {
        touches[cells.of(step.target_buffer, step.target + i)].push_back({s, true});
      }
    }
  }
  for (const auto& cell : touches) {
    for (size_t late = 0; late < cell.size(); ++late) {
      for (size_t early = 0; early < late; ++early) {
        const bool conflict = cell[early].step != cell[late].step && (cell[early].write || cell[late].write);
        if (conflict && !ordered(cell[early].step, cell[late].step)) {
          return defect(plan, cell[late].step, "it races with an earlier step for a block");
        }
      }
    }
  }
  return {};
}

Status check_shape(std::span<const Plan> plans) {
  const Plan& first = plans.front();
  for (size_t r = 0; r < plans.size(); ++r) {
    const Plan& plan = plans[r];
    if (plan.rank != static_cast<Rank>(r) || plan.nranks != static_cast<int>(plans.size())) {
      return defect(plan, plan.steps.size(), "the plans are not one per rank, by rank");
    }
    if (plan.collective != first.collective || plan.blocks_per_unit != first.blocks_per_unit ||
        plan.root != first.root) {
      return defect(plan, plan.steps.size(), "the ranks' plans are for different calls");
    }
    for (size_t s = 0; s < plan.steps.size(); ++s) CCOM_TRY(check_step(plan, s));
  }
  return {};
}

}  // namespace ccom
