// SPDX-License-Identifier: Apache-2.0
//
// Explicit plans in plan files: their steps, and what steps with positions go by.
#include "base/collective.h"
#include "planner/plan_file_parts.h"
#include "planner/plan_text.h"

namespace ccom {
namespace {

using nlohmann::ordered_json;

ordered_json numbers_json(const NumberList& list) {
  ordered_json numbers = ordered_json::array();
  for (uint32_t i = 0; i < list.size(); ++i) numbers.push_back(list[i]);
  return numbers;
}

NumberList numbers_at(const JsonAt& at) { return NumberList(integers_at<uint32_t>(at, 0, UINT32_MAX)); }

// Their proof says what is wrong with them.
void read_positions(JsonObject& object, Plan& plan) {
  if (object.has("order")) plan.order = numbers_at(object.at("order"));
  if (object.has("stretches")) {
    for_elements(object.at("stretches"), 0, kMostPlanItems, [&](const JsonAt& stretch) {
      const auto numbers = integers_at<uint32_t>(stretch, 0, UINT32_MAX);
      if (numbers.size() != 2) return stretch.problem.add(stretch.path, "expected a slot and a position");
      plan.stretches.push_back({numbers[0], numbers[1]});
    });
  }
  if (!object.has("permutations")) return;
  for_elements(object.at("permutations"), 0, UINT16_MAX,
               [&](const JsonAt& list) { plan.permutations.push_back(numbers_at(list)); });
}

}  // namespace

Plan read_plan(const JsonAt& at, const AlgorithmUse& use, int member, const std::string& name) {
  JsonObject object(at);
  Plan plan;
  plan.collective = use.collective;
  plan.algorithm = name;
  plan.rank = member;
  plan.nranks = use.members;
  plan.root = use.root;
  plan.input_units = input_units(use.collective, use.members, member == use.root);
  plan.output_units = output_units(use.collective, use.members, member == use.root);
  if (object.has("blocks_per_unit")) {
    plan.blocks_per_unit = static_cast<uint32_t>(object.at("blocks_per_unit").integer(1, 1 << 24));
  }
  if (object.has("scratch_slots")) {
    plan.scratch_slots = static_cast<uint32_t>(object.at("scratch_slots").integer(0, 1 << 24));
  }
  read_positions(object, plan);
  for_elements(object.at("steps"), 0, kMostPlanItems, [&](const JsonAt& line) {
    const auto step = step_from(line.text(1, 1 << 16));
    if (!step) return at.problem.add(line.path, "is no step");
    if (step->is_transfer() && (step->peer >= use.members || step->peer == member)) {
      return at.problem.add(line.path, "there is no other rank " + std::to_string(step->peer));
    }
    plan.steps.push_back(*step);
  });
  object.finish();
  return plan;
}

ordered_json json_of(const Plan& plan) {
  ordered_json object = ordered_json::object();
  if (plan.blocks_per_unit != 1) object["blocks_per_unit"] = plan.blocks_per_unit;
  if (plan.scratch_slots != 0) object["scratch_slots"] = plan.scratch_slots;
  if (!plan.order.empty()) object["order"] = numbers_json(plan.order);
  for (const Stretch& stretch : plan.stretches) object["stretches"].push_back({stretch.slot, stretch.position});
  for (const NumberList& permutation : plan.permutations) object["permutations"].push_back(numbers_json(permutation));
  object["steps"] = ordered_json::array();
  for (const Step& step : plan.steps) object["steps"].push_back(plan_text(step));
  return object;
}

}  // namespace ccom
