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

// In lines of sixteen.
std::string numbers_text(const char* name, const NumberList& list) {
  std::string text;
  for (uint32_t i = 0; i < list.size(); ++i) {
    if (i % 16 == 0) text += i == 0 ? std::string("      ") + name + ":" : "\n         ";
    text += " " + std::to_string(list[i]);
  }
  return list.empty() ? text : text + "\n";
}

std::string with_channel(std::string text, const Step& step) {
  if (step.channel > 0) text += " channel " + std::to_string(step.channel);
  return step.egress > 0 ? text + " egress " + std::to_string(step.egress) : text;
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
    case StepKind::Permute: text = "permute " + target + " = " + source + " by " + std::to_string(step.inputs); break;
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
  text += numbers_text("order", plan.order);
  for (size_t i = 0; i < plan.stretches.size(); ++i) {
    const Stretch& stretch = plan.stretches[i];
    text += (i == 0 ? "      tmp[" : ", tmp[") + std::to_string(stretch.slot) + "..] for position " +
            std::to_string(stretch.position) + "..";
  }
  if (!plan.stretches.empty()) text += "\n";
  for (size_t i = 0; i < plan.permutations.size(); ++i) {
    text += numbers_text(("permutation " + std::to_string(i)).c_str(), plan.permutations[i]);
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const std::string number = std::to_string(s);
    text += std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') + number + "  " + to_text(plan.steps[s]) + "\n";
  }
  return text;
}

}  // namespace ccom
