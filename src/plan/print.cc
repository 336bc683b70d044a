// SPDX-License-Identifier: Apache-2.0
#include "plan/print.h"

namespace ccom {
namespace {

std::string run_text(Buffer buffer, uint32_t first, uint32_t count) {
  static constexpr const char* kNames[] = {"in", "out", "tmp"};
  std::string text = kNames[static_cast<int>(buffer)];
  text += "[" + std::to_string(first);
  if (count != 1) text += ".." + std::to_string(first + count - 1);
  return text + "]";
}

std::string with_channel(std::string text, const Step& step) {
  return step.channel == 0 ? text : text + " channel " + std::to_string(step.channel);
}

}  // namespace

std::string to_text(const Step& step) {
  const std::string source = run_text(step.source_buffer, step.source, step.count);
  const std::string target = run_text(step.target_buffer, step.target, step.count);
  const std::string peer = std::to_string(step.peer);
  std::string text;
  switch (step.kind) {
    case StepKind::Send: text = with_channel("send " + source + " -> rank " + peer, step); break;
    case StepKind::Receive: text = with_channel("recv " + target + " <- rank " + peer, step); break;
    case StepKind::ReceiveReduce:
      text = with_channel("recv-reduce " + target + " = " + source + " + rank " + peer, step);
      break;
    case StepKind::Copy: text = "copy " + target + " = " + source; break;
    case StepKind::Reduce:
      text = "reduce " + target + " =";
      for (uint32_t i = 0; i < step.inputs; ++i) {
        text += (i == 0 ? " " : " + ") + run_text(step.source_buffer, step.source + i * step.count, step.count);
      }
      break;
  }
  return step.completes ? text + ", complete" : text;
}

std::string to_text(const Plan& plan) {
  std::string text = std::string(name_of(plan.collective)) + " " + plan.algorithm + ", rank " +
                     std::to_string(plan.rank) + " of " + std::to_string(plan.nranks);
  if (plan.root >= 0) text += ", root " + std::to_string(plan.root);
  if (plan.in_place) text += ", in place";
  text += ": " + std::to_string(plan.blocks_per_unit) + (plan.blocks_per_unit == 1 ? " block" : " blocks") +
          " per unit, " + std::to_string(plan.scratch_slots) + " scratch\n";
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const std::string number = std::to_string(s);
    text += std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') + number + "  " + to_text(plan.steps[s]) + "\n";
  }
  return text;
}

}  // namespace ccom
