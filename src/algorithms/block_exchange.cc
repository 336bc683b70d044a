// SPDX-License-Identifier: Apache-2.0
//
// Everybody sends what others get, straight to them: the v-forms of reduce-scatter, allgather, gather, scatter and
// alltoall by block lists. As direct.cc, whose bounds hold: the bytes of all blocks once for each taker, in 1 step.
#include <algorithm>

#include "algorithms/stage_plans.h"
#include "base/assert.h"

namespace ccom {
namespace {

class Exchange {
 public:
  Exchange(const Program& program, const Stage& stage, size_t group, int member)
      : program_(program),
        members_(stage.groups[group]),
        sums_(stage.sums),
        completes_(stage.completes),
        me_(member),
        size_(static_cast<int>(members_.size())) {}

  void write(Plan& plan) {
    plan_ = &plan;
    for (int k = 1; k < size_; ++k) {
      const int to = (me_ + k) % size_;
      for_each_message(me_, to, [&](uint32_t source, uint32_t, uint32_t count) {
        Step send{.kind = StepKind::Send, .source_buffer = Buffer::Input, .peer = to};
        send.source = send.block = source;
        send.count = count;
        plan.steps.push_back(send);
      });
    }
    sums_ ? receive_sums() : receive_copies();
    copy_own();
  }

 private:
  const std::vector<BlockAt>& gives(int member) const { return program_.gives(members_[static_cast<size_t>(member)]); }
  const std::vector<BlockAt>& gets(int member) const { return program_.gets(members_[static_cast<size_t>(member)]); }

  // Index of a block in a list; the list's size if it is not there.
  static uint32_t index_of(const std::vector<BlockAt>& list, uint32_t block) {
    return static_cast<uint32_t>(std::ranges::find(list, block, &BlockAt::block) - list.begin());
  }
  static bool follows(const BlockAt& a, const BlockAt& b) { return a.buffer == b.buffer && a.index + 1 == b.index; }

  // Calls fn(source unit, target unit, count) for every message from one member to another, in the same order at both
  // ends. Sums travel block by block.
  template <typename Fn>
  void for_each_message(int from, int to, Fn fn) const {
    const std::vector<BlockAt>& source = gives(from);
    const std::vector<BlockAt>& target = gets(to);
    const bool joins = program_.tile_bytes == 0 && !sums_;
    for (uint32_t t = 0; t < target.size();) {
      const uint32_t s = index_of(source, target[t].block);
      uint32_t count = 1;
      if (s < source.size()) {
        while (joins && s + count < source.size() && t + count < target.size() &&
               source[s + count].block == target[t + count].block &&
               follows(source[s + count - 1], source[s + count]) && follows(target[t + count - 1], target[t + count])) {
          ++count;
        }
        fn(s, t, count);
      }
      t += count;
    }
  }

  void receive_copies() {
    for (int k = 1; k < size_; ++k) {
      const int from = (me_ + size_ - k) % size_;
      for_each_message(from, me_, [&](uint32_t, uint32_t target, uint32_t count) {
        receive(from, {Buffer::Output, target}, target, count);
      });
    }
  }

  // All parts of a block next to each other in scratch, by member; two parts are combined on arrival.
  void receive_sums() {
    std::vector<uint32_t> slots(gets(me_).size());
    for (uint32_t t = 0; t < slots.size(); ++t) {
      slots[t] = plan_->scratch_slots;
      if (givers(t) != 2 || !gives_it(t)) plan_->scratch_slots += givers(t);
    }
    for (int k = 1; k < size_; ++k) {
      const int from = (me_ + size_ - k) % size_;
      for_each_message(from, me_, [&](uint32_t, uint32_t target, uint32_t) {
        if (givers(target) == 2 && gives_it(target)) {
          Step step{.kind = StepKind::ReceiveReduce, .completes = completes_, .peer = from};
          step.source = index_of(gives(me_), gets(me_)[target].block);
          step.target = step.block = target;
          step.count = 1;
          plan_->steps.push_back(step);
        } else {
          receive(from, {Buffer::Scratch, slots[target] + position(target, from)}, target, 1);
        }
      });
    }
    for (uint32_t t = 0; t < slots.size(); ++t) {
      if (givers(t) < 2 || (givers(t) == 2 && gives_it(t))) continue;
      if (gives_it(t)) {
        copy(Buffer::Input, index_of(gives(me_), gets(me_)[t].block), {Buffer::Scratch, slots[t] + position(t, me_)},
             t);
      }
      Step step{.kind = StepKind::Reduce,
                .source_buffer = Buffer::Scratch,
                .inputs = static_cast<uint16_t>(givers(t)),
                .completes = completes_};
      step.source = slots[t];
      step.target = step.block = t;
      step.count = 1;
      plan_->steps.push_back(step);
    }
    for (uint32_t t = 0; t < slots.size(); ++t) {  // a sum of one part
      if (givers(t) != 1) continue;
      if (gives_it(t))
        copy(Buffer::Input, index_of(gives(me_), gets(me_)[t].block), {Buffer::Output, t}, t, completes_);
      if (!gives_it(t)) copy(Buffer::Scratch, slots[t], {Buffer::Output, t}, t, completes_);
    }
  }

  // What this member gives to itself. In place it is a copy onto itself, which moves nothing.
  void copy_own() {
    if (sums_) return;
    for (uint32_t t = 0; t < gets(me_).size(); ++t) {
      const uint32_t s = index_of(gives(me_), gets(me_)[t].block);
      if (s < gives(me_).size()) copy(Buffer::Input, s, {Buffer::Output, t}, t);
    }
  }

  uint32_t givers(uint32_t target) const { return position(target, size_); }
  bool gives_it(uint32_t target) const { return index_of(gives(me_), gets(me_)[target].block) < gives(me_).size(); }
  // How many of the members before `member` give the block.
  uint32_t position(uint32_t target, int member) const {
    uint32_t before = 0;
    for (int other = 0; other < member; ++other) {
      before += index_of(gives(other), gets(me_)[target].block) < gives(other).size() ? 1 : 0;
    }
    return before;
  }

  void receive(int from, Location target, uint32_t block, uint32_t count) {
    Step step{.kind = StepKind::Receive, .target_buffer = target.buffer, .peer = from};
    step.target = target.index;
    step.block = block;
    step.count = count;
    plan_->steps.push_back(step);
  }
  void copy(Buffer source_buffer, uint32_t source, Location target, uint32_t block, bool completes = false) {
    Step step{
        .kind = StepKind::Copy, .source_buffer = source_buffer, .target_buffer = target.buffer, .completes = completes};
    step.source = source;
    step.target = target.index;
    step.block = block;
    step.count = 1;
    plan_->steps.push_back(step);
  }

  const Program& program_;
  const std::vector<StageMember>& members_;
  const bool sums_, completes_;
  const int me_, size_;
  Plan* plan_ = nullptr;
};

}  // namespace

Plan block_exchange_plan(const Program& program, const Stage& stage, size_t group, int member) {
  const StageMember& me = stage.groups[group][static_cast<size_t>(member)];
  Plan plan;
  plan.collective = stage.collective;
  plan.algorithm = "blocks";
  plan.rank = member;
  plan.nranks = static_cast<int>(stage.groups[group].size());
  plan.root = stage.root;
  plan.input_units = static_cast<uint32_t>(program.gives(me).size());
  plan.output_units = static_cast<uint32_t>(program.gets(me).size());
  Exchange(program, stage, group, member).write(plan);
  return plan;
}

}  // namespace ccom
