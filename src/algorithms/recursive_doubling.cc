// SPDX-License-Identifier: Apache-2.0
//
// Recursive doubling allreduce: in round j everybody exchanges the whole range with the member whose index differs in
// bit j.
//
// lg p steps and n lg p bytes for p = 2^k; other p fold the excess members into neighbours first and unfold last (2
// more steps). Latency-optimal for one port: for short messages over a network. Both partners of an exchange compute
// the same sum, so all end with the same bits; lg p roundings. Source: Thakur, Rabenseifner & Gropp, Optimization of
// collective communication operations in MPICH, IJHPCA 19(1), 2005.
#include <bit>
#include <cmath>

#include "algorithms/bricks.h"
#include "algorithms/cost.h"

namespace ccom {
namespace {

// One run of blocks through all rounds. A partner reads what we send while we receive, so a round's result goes to
// another place than its operand, chosen such that the last one lands in the output.
class Exchange {
 public:
  Exchange(Builder& builder, uint32_t block, uint32_t count, uint8_t channel)
      : builder_(builder), block_(block), count_(count), channel_(channel) {}

  void round(Rank partner, uint32_t rounds_left, bool completes) {
    const Location own = builder_.unify(block_, count_);
    Location target{Buffer::Output, block_};
    if (rounds_left % 2 == 1 || builder_.is_output(own)) target = scratch(own);
    builder_.send_from(partner, own, block_, count_, channel_);
    builder_.add({.kind = StepKind::ReceiveReduce,
                  .source_buffer = own.buffer,
                  .target_buffer = target.buffer,
                  .channel = channel_,
                  .completes = completes,
                  .peer = partner,
                  .source = own.index,
                  .target = target.index,
                  .count = count_,
                  .block = block_});
    builder_.set_home(block_, count_, target);
  }

 private:
  // One of two scratch runs: the one that does not hold the operand.
  Location scratch(Location own) {
    if (slots_ == UINT32_MAX) slots_ = builder_.new_scratch(2 * count_);
    const bool first_is_busy = own.buffer == Buffer::Scratch && own.index == slots_;
    return {Buffer::Scratch, first_is_busy ? slots_ + count_ : slots_};
  }

  Builder& builder_;
  uint32_t block_, count_;
  uint8_t channel_;
  uint32_t slots_ = UINT32_MAX;
};

}  // namespace

void recursive_doubling_allreduce(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel) {
  const uint32_t size = group.size();
  const uint32_t power = std::bit_floor(size);
  const uint32_t excess = size - power;  // members 2i+1 below 2 * excess fold into 2i
  if (group.me < 2 * excess && group.me % 2 == 1) {
    builder.send(group.rank(group.me - 1), range, channel);
    builder.receive(group.rank(group.me - 1), range, channel);
    return;
  }
  const bool folded = group.me < 2 * excess;
  if (folded) builder.receive_reduce(group.rank(group.me + 1), range, false, channel);
  const uint32_t label = folded ? group.me / 2 : group.me - excess;
  const auto member = [&](uint32_t other) { return group.rank(other < excess ? 2 * other : other + excess); };
  const auto rounds = static_cast<uint32_t>(std::countr_zero(power));
  builder.for_each_run(range, [&](uint32_t block, uint32_t count) {
    Exchange exchange(builder, block, count, channel);
    for (uint32_t j = 0; j < rounds; ++j) {
      exchange.round(member(label ^ (uint32_t{1} << j)), rounds - 1 - j, completes && j + 1 == rounds);
    }
  });
  if (folded) builder.send(group.rank(group.me + 1), range, channel);
}

Cost recursive_doubling_cost(double p, double n) {
  const double rounds = std::floor(std::log2(p));
  const double folding = std::exp2(rounds) < p ? 2 : 0;  // the members that fold wait for two messages more
  return {rounds + folding, rounds + folding, n * (rounds + folding), 2 * n * rounds + n * folding};
}

}  // namespace ccom
