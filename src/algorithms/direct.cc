// SPDX-License-Identifier: Apache-2.0
//
// Everybody with everybody: one-shot allreduce (1 step), and the two halves of two-shot (1 step each).
//
// One-shot sends (p-1)n per rank and is for tiny messages; two-shot sends 2(p-1)/p n in 2 steps, optimal bytes at p - 1
// peers. Both reduce all p parts at one place in group order: one rounding, whatever the type. Best in shared memory,
// where peers cost nothing and waits are dear. Over a network p - 1 simultaneous senders collide (incast). Source: the
// "mesh" of AWS Neuron's collectives; Chan et al., Collective communication: theory, practice, and experience, 2007.
#include "algorithms/bricks.h"
#include "algorithms/cost.h"

namespace ccom {

void direct_reduce_scatter(Builder& builder, const Group& group, uint32_t owners, Range range, bool completes,
                           uint8_t channel) {
  const uint32_t size = group.size();
  for (uint32_t k = 1; k < size; ++k) {
    const uint32_t to = (group.me + k) % size;
    if (to < owners) builder.send(group.rank(to), range.part(to, owners), channel);
  }
  if (group.me >= owners) return;
  const Range own = range.part(group.me, owners);
  if (size == 2) {
    builder.receive_reduce(group.rank(group.me + 1), own, completes, channel);
  } else {
    builder.gather_and_reduce(group, own, completes, channel);
  }
}

void direct_allgather(Builder& builder, const Group& group, uint32_t owners, Range range, uint8_t channel) {
  const uint32_t size = group.size();
  for (uint32_t k = 1; k < size && group.me < owners; ++k) {
    builder.send(group.rank(group.me + k), range.part(group.me, owners), channel);
  }
  for (uint32_t k = 1; k < size; ++k) {
    const uint32_t from = (group.me + size - k) % size;
    if (from < owners) builder.receive(group.rank(from), range.part(from, owners), channel);
  }
}

void one_shot_allreduce(Builder& builder, const Group& group, Range range, bool completes, uint8_t channel) {
  for (uint32_t k = 1; k < group.size(); ++k) builder.send(group.rank(group.me + k), range, channel);
  bool overwrites = false;  // would the result land on what is still being sent?
  builder.for_each_run(
      range, [&](uint32_t block, uint32_t count) { overwrites |= builder.is_output(builder.unify(block, count)); });
  if (group.size() == 2 && !overwrites) {
    builder.receive_reduce(group.rank(group.me + 1), range, completes, channel);
  } else {
    builder.gather_and_reduce(group, range, completes, channel);
  }
}

Cost direct_reduce_scatter_cost(double p, double n) { return {1, p - 1, n * (p - 1) / p, n}; }
Cost direct_allgather_cost(double p, double n) { return {1, p - 1, n * (p - 1) / p, 0}; }
Cost one_shot_cost(double p, double n) { return {1, p - 1, n * (p - 1), n * p}; }

}  // namespace ccom
