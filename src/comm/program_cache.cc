// SPDX-License-Identifier: Apache-2.0
#include "comm/program_cache.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/call.h"
#include "base/collective.h"
#include "comm/program_proof.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

size_t bytes_of(const BoundPlan& plan) {
  return sizeof plan + plan.steps.capacity() * sizeof(BoundStep) + plan.moves.capacity() * sizeof(BoundMove) +
         plan.firsts.capacity() * sizeof(uint64_t);
}

size_t bytes_of(const NodeViews& views) {
  size_t bytes = sizeof views + views.block_elements.capacity() * sizeof(size_t);
  for (const auto* lists : {&views.given, &views.got})
    for (const std::vector<int64_t>& list : *lists)
      bytes += sizeof(std::vector<int64_t>) + list.capacity() * sizeof(int64_t);
  return bytes;
}

size_t bytes_of(const BoundProgram& program) {
  size_t bytes = sizeof program + program.order.capacity() * sizeof(Part);
  for (const std::vector<BoundStage>& stages : program.kinds) {
    for (const BoundStage& stage : stages) {
      bytes += sizeof stage + stage.copies.capacity() * sizeof(BoundStage::Copy);
      for (const auto& plan : stage.plans) bytes += bytes_of(*plan);
      if (stage.views != nullptr) bytes += bytes_of(*stage.views);
      if (stage.kept != nullptr) bytes += BoundCall::bytes(stage.host.task->task().nranks);
    }
  }
  return bytes;
}

bool can_be_narrow(const ProgramKey& key) {
  const bool has_type = key.type == DataType::Float32 || key.type == DataType::Bfloat16;
  return has_type && (key.op == ReduceOp::Sum || key.op == ReduceOp::Avg);
}

}  // namespace

ProgramCache::ProgramCache(Rank rank, const Topology& topology, std::shared_ptr<ProgramChoices> choices,
                           const LineCosts& lines, ProgramRunner& runner, bool proves)
    : rank_(rank), topology_(topology), choices_(std::move(choices)), lines_(lines), runner_(runner), proves_(proves) {}

Question ProgramCache::question(const ProgramKey& key) const {
  const bool is_v = !key.units.lengths.empty();
  const size_t elements = is_v ? std::accumulate(key.units.lengths.begin(), key.units.lengths.end(), size_t{0})
                               : key.count * largest_units(key.collective, topology_.nranks());
  const size_t bytes = elements * size_of(key.type);
  const bool sums = reduces(key.collective);
  SumOrder order = sums && key.op == ReduceOp::UserOrdered ? SumOrder::Ranks : SumOrder::Any;
  const Settings& settings = choices_->settings();
  const bool has_grouping = sums && depends_on_grouping(key.type, key.op);
  const bool is_narrow = sums && is_narrow_float(key.type) && !is_user(key.op);
  const bool rounds_once = is_narrow && has_grouping && settings.rounds_once;
  if (has_grouping) order = std::max(order, settings.order);
  return {.collective = key.collective,
          .bytes = bytes == 0 ? 0 : std::bit_ceil(bytes),
          .narrow_float = is_narrow,
          .root = key.root,
          .order = order,
          .rounds_once = rounds_once,
          .narrow_bytes = rounds_once ? size_of(key.type) : Question().narrow_bytes,
          .is_v = is_v,
          .wire = can_be_narrow(key) ? settings.wire : UnitType::Call};
}

Result<std::shared_ptr<const Choice>> ProgramCache::choice(const ProgramKey& key) {
  CCOM_TRY_ASSIGN(const Chosen* const found, choices_->get(question(key)));
  return found->choice;
}

// Programs of the user's always; ours if asked to, and not again if another size has had the same one.
Status ProgramCache::prove_once(Chosen& chosen, const Question& asked) const {
  const Program& program = chosen.choice->program();
  if (chosen.is_proved) return {};
  if (chosen.choice->is_users) {
    CCOM_TRY(prove_users(program, asked, asked.rounds_once ? 1 : allowed_roundings(topology_)));
  } else if (proves_) {
    const auto is_same = [&](const auto& compiled) { return *compiled->program == program; };
    const bool asks = asked.order != SumOrder::Any || asked.rounds_once || is_block(program.wire());
    if (asks || std::ranges::none_of(compiled_, is_same)) CCOM_TRY(prove(program, asked));
  }
  chosen.is_proved = true;
  return {};
}

Result<std::shared_ptr<const CompiledProgram>> ProgramCache::compiled(const ProgramKey& key) {
  CCOM_TRY_ASSIGN(Chosen* const found, choices_->get(question(key)));
  CCOM_TRY(prove_once(*found, question(key)));
  const std::shared_ptr<const Choice>& choice = found->choice;
  const auto known = std::ranges::find_if(compiled_, [&](const auto& compiled) {
    return compiled->in_place == key.in_place && *compiled->program == choice->program();
  });
  if (known != compiled_.end()) return *known;
  if (compiled_.size() == kMostCompiled) compiled_.clear();
  const WaysOfStage ways = [&](const Stage& stage) {
    std::vector<NodeChoice> all = node_ways(topology_, choice->program(), stage, lines_);
    if (!choices_->settings().has_ways) all.resize(1);
    return all;
  };
  CCOM_TRY_ASSIGN(std::shared_ptr<const CompiledProgram> made,
                  compile(std::shared_ptr<const Program>(choice, &choice->program()), rank_, key.in_place,
                          choice->is_users ? WaysOfStage() : ways));
  compiled_.push_back(made);
  return made;
}

size_t ProgramCache::Hash::operator()(const ProgramKey& key) const {
  uint64_t hash = mix(key.count);
  for (const std::vector<size_t>* list : {&key.units.lengths, &key.units.begins})
    for (const size_t value : *list) hash = mix(hash ^ value);
  return mix(hash ^ kind_of(key.collective, key.type, key.op, key.in_place, key.root));
}

Result<KeptProgram*> ProgramCache::keep(const ProgramKey& key) {
  const auto known = bound_.find(key);
  if (known != bound_.end()) return &known->second;
  CCOM_TRY_ASSIGN(std::shared_ptr<const CompiledProgram> program, compiled(key));
  CCOM_TRY_ASSIGN(std::shared_ptr<const BoundProgram> bound,
                  runner_.bind(std::move(program), {key.type, key.op, key.count, key.units}));
  const size_t bytes = bytes_of(*bound) + (key.units.lengths.size() + key.units.begins.size()) * sizeof(size_t);
  if (bound_bytes_ + bytes > kKeptBytes) forget_least_used();
  bound_bytes_ += bytes;
  return &bound_.insert_or_assign(key, KeptProgram{std::move(bound), bytes}).first->second;
}

// Half of the programs.
void ProgramCache::forget_least_used() {
  std::vector<uint64_t> uses;
  for (const auto& [key, kept] : bound_) uses.push_back(kept.used);
  if (uses.empty()) return;
  const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
  std::ranges::nth_element(uses, middle);
  std::erase_if(bound_, [&](const auto& entry) {
    if (entry.second.used > *middle) return false;
    bound_bytes_ -= entry.second.bytes;
    return true;
  });
  ++generation_;
}

}  // namespace ccom
