// SPDX-License-Identifier: Apache-2.0
//
// Everybody sends what others get, straight to them: the v-forms of reduce-scatter, allgather, gather, scatter and
// alltoall by block lists. As direct.cc, whose bounds hold: the bytes of all blocks once for each taker, in 1 step.
#include <algorithm>

#include "algorithms/builder.h"
#include "algorithms/stage_plans.h"
#include "base/assert.h"

namespace ccom {
namespace {

class BlockExchange {
 public:
  BlockExchange(const Program& program, const Stage& stage, size_t group, int member, Plan plan)
      : program_(program),
        members_(stage.groups[group]),
        sums_(stage.sums),
        completes_(stage.completes),
        me_(member),
        size_(static_cast<int>(members_.size())),
        steps_(std::move(plan)) {}

  Plan write() {
    for (int k = 1; k < size_; ++k) {
      const int to = (me_ + k) % size_;
      for_each_message(me_, to, [&](uint32_t source, uint32_t, uint32_t count) {
        steps_.send_from(to, {Buffer::Input, source}, source, count);
      });
    }
    sums_ ? receive_sums() : receive_copies();
    copy_own();
    return std::move(steps_).finish();
  }

 private:
  const std::vector<BlockAt>& gives(int member) const { return program_.gives(members_[static_cast<size_t>(member)]); }
  const std::vector<BlockAt>& gets(int member) const { return program_.gets(members_[static_cast<size_t>(member)]); }

  // Index of a block in a list, perhaps its own number; the list's size if it is not there.
  static uint32_t index_of(const std::vector<BlockAt>& list, uint32_t block) {
    if (block < list.size() && list[block].block == block) return block;
    return static_cast<uint32_t>(std::ranges::find(list, block, &BlockAt::block) - list.begin());
  }
  static bool follows(const BlockAt& a, const BlockAt& b) { return a.buffer == b.buffer && a.index + 1 == b.index; }

  // Calls fn(source unit, target unit, count) for every message from one member to another, in the same order at both
  // ends. Sums travel block by block.
  template <typename Fn>
  void for_each_message(int from, int to, Fn fn) const {
    const std::vector<BlockAt>& source = gives(from);
    const std::vector<BlockAt>& target = gets(to);
    const bool joins = program_.tile_bytes == 0 && !sums_ && !program_.is_v;
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
        steps_.receive_into(from, {Buffer::Output, target}, target, count);
      });
    }
  }

  // All parts of a block next to each other in scratch, by member; two parts are combined on arrival.
  void receive_sums() {
    find_givers();
    std::vector<uint32_t> slots(gets(me_).size());
    for (uint32_t t = 0; t < slots.size(); ++t) {
      slots[t] = steps_.new_scratch(givers(t) == 2 && gives_it(t) ? 0 : givers(t));
    }
    for (int k = 1; k < size_; ++k) {
      const int from = (me_ + size_ - k) % size_;
      for_each_message(from, me_, [&](uint32_t, uint32_t target, uint32_t) {
        if (givers(target) == 2 && gives_it(target)) {
          steps_.receive_reduce_into(from, own_part(target), {Buffer::Output, target}, target, 1, completes_);
        } else {
          steps_.receive_into(from, {Buffer::Scratch, slots[target] + position(target, from)}, target, 1);
        }
      });
    }
    for (uint32_t t = 0; t < slots.size(); ++t) {
      if (givers(t) < 2 || (givers(t) == 2 && gives_it(t))) continue;
      if (gives_it(t)) steps_.copy(own_part(t), {Buffer::Scratch, slots[t] + position(t, me_)}, t, 1);
      steps_.reduce(slots[t], givers(t), {Buffer::Output, t}, t, 1, completes_);
    }
    for (uint32_t t = 0; t < slots.size(); ++t) {  // a sum of one part
      if (givers(t) != 1) continue;
      const Location part = gives_it(t) ? own_part(t) : Location{Buffer::Scratch, slots[t]};
      steps_.copy(part, {Buffer::Output, t}, t, 1, completes_);
    }
  }

  // What this member gives to itself. In place it is a copy onto itself, which moves nothing.
  void copy_own() {
    if (sums_) return;
    for (uint32_t t = 0; t < gets(me_).size(); ++t) {
      if (gives_it(t)) steps_.copy(own_part(t), {Buffer::Output, t}, t, 1);
    }
  }

  // Where this member's own part of a block lies, if it gives one.
  Location own_part(uint32_t target) const { return {Buffer::Input, index_of(gives(me_), gets(me_)[target].block)}; }
  uint32_t givers(uint32_t target) const { return position(target, size_); }
  void find_givers() {
    for (const BlockAt& target : gets(me_)) {
      std::vector<uint32_t>& before = givers_before_.emplace_back(1, 0);
      for (int member = 0; member < size_; ++member) {
        const bool gives_it = index_of(gives(member), target.block) < gives(member).size();
        before.push_back(before.back() + (gives_it ? 1 : 0));
      }
    }
  }
  bool gives_it(uint32_t target) const { return own_part(target).index < gives(me_).size(); }
  // How many of the members before `member` give the block.
  uint32_t position(uint32_t target, int member) const { return givers_before_[target][static_cast<size_t>(member)]; }

  const Program& program_;
  const std::vector<StageMember>& members_;
  const bool sums_, completes_;
  const int me_, size_;
  std::vector<std::vector<uint32_t>> givers_before_;  // of sums: by what this member gets, then by member
  StepWriter steps_;
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
  plan.has_unequal_units = program.slices > 1;  // the last slices are shorter
  return BlockExchange(program, stage, group, member, std::move(plan)).write();
}

}  // namespace ccom
