// SPDX-License-Identifier: Apache-2.0
#include "algorithms/node.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {
namespace {

// Writes one rank's plan.
class Author {
 public:
  Author(const Call& call, const NodeShape& shape, std::span<const Reach> reach)
      : me_(call.rank), n_(static_cast<uint32_t>(call.nranks)), root_(call.root), shape_(shape), reach_(reach) {
    plan_.collective = call.collective;
    plan_.algorithm = name_of(shape.scheme);
    plan_.rank = call.rank;
    plan_.nranks = call.nranks;
    plan_.root = call.root;
    plan_.in_place = call.in_place;
    plan_.phases.emplace_back();
  }

  NodePlan write() {
    switch (plan_.collective) {
      case Collective::AllReduce: write_allreduce(); break;
      case Collective::Reduce: write_reduce(); break;
      case Collective::ReduceScatter: write_reduce_scatter(); break;
      case Collective::AllGather: write_allgather(); break;
      case Collective::AllToAll: write_alltoall(); break;
      case Collective::Broadcast: write_broadcast(); break;
      case Collective::Gather: write_gather(); break;
      case Collective::Scatter: write_scatter(); break;
      default: meet(); break;  // Barrier
    }
    return std::move(plan_);
  }

 private:
  const Reach& reach(Rank rank) const { return reach_[static_cast<size_t>(rank)]; }
  uint32_t my_piece() const { return static_cast<uint32_t>(me_); }
  Operand mine(Area area) const { return {area, me_}; }
  // Where a rank's contribution is read: at its owner's, in shared memory, or where it lies.
  Operand contribution(Rank rank) const { return {rank == me_ || reach(rank).input ? Area::Input : Area::Stage, rank}; }
  std::vector<Rank> everyone() const {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < plan_.nranks; ++rank) ranks.push_back(rank);
    return ranks;
  }

  void units(uint32_t input, uint32_t output, uint32_t parts = 1) {
    plan_.input_units = input;
    plan_.output_units = output;
    plan_.parts = parts;
  }
  void step(std::vector<Operand> sources, std::vector<Operand> targets, uint32_t source_piece, uint32_t target_piece,
            uint32_t count = 1, bool completes = false) {
    plan_.phases.back().steps.push_back(
        {std::move(sources), std::move(targets), source_piece, target_piece, count, completes});
  }
  void copy(Operand source, Operand target, uint32_t source_piece, uint32_t target_piece, uint32_t count = 1) {
    if (count > 0) step({source}, {target}, source_piece, target_piece, count);
  }
  void meet(std::vector<Rank> waits_for) {
    std::erase(waits_for, me_);
    plan_.phases.back().waits_for = std::move(waits_for);
    plan_.phases.emplace_back();
  }
  void meet() {
    plan_.phases.back().is_full = true;
    meet(everyone());
  }
  // Nobody leaves while others may still be at its buffers.
  void meet_if(bool reached) {
    if (reached) meet();
  }
  bool any_input_reached(const std::vector<Rank>& ranks) const {
    return std::ranges::any_of(ranks, [this](Rank rank) { return reach(rank).input; });
  }
  void note_staging(bool staged) { plan_.staged |= staged; }

  // Shows `pieces` of the input to the others, all but this rank's own where `skips_own`.
  void copy_in(uint32_t pieces, bool skips_own) {
    if (reach(me_).input) return;
    const uint32_t own = skips_own ? my_piece() : pieces;
    copy(mine(Area::Input), mine(Area::Stage), 0, 0, std::min(own, pieces));
    if (own < pieces) copy(mine(Area::Input), mine(Area::Stage), own + 1, own + 1, pieces - own - 1);
  }
  std::vector<Operand> contributions(const std::vector<Rank>& ranks) const {
    std::vector<Operand> sources;
    for (const Rank rank : ranks) sources.push_back(contribution(rank));
    return sources;
  }

  void write_allreduce() {
    switch (shape_.scheme) {
      case NodeScheme::OneShot: return write_one_shot();
      case NodeScheme::GatherRelease: return write_gather_release();
      case NodeScheme::Pull: return write_pull();
      case NodeScheme::Domains: return write_domains();
      default: return write_two_shot();
    }
  }

  void write_one_shot() {
    units(1, 1);
    const std::vector<Rank> all = everyone();
    for (const Rank rank : all) note_staging(!reach(rank).input);
    copy_in(1, false);
    meet();
    combine_all({mine(Area::Output)});
    meet_if(any_input_reached(all));
  }

  // All contributions, in rank order.
  void combine_all(std::vector<Operand> targets) { step(contributions(everyone()), std::move(targets), 0, 0, 1, true); }

  const std::vector<Rank>& my_group() const {
    return *std::ranges::find_if(
        shape_.groups, [this](const std::vector<Rank>& group) { return std::ranges::binary_search(group, me_); });
  }

  void write_gather_release() {
    units(1, 1);
    note_staging(true);
    const Rank leader = my_group().front();
    copy(mine(Area::Input), mine(Area::Stage), 0, 0);
    meet(me_ == leader ? everyone() : std::vector<Rank>());
    if (me_ == leader) combine_all({mine(Area::Output), mine(Area::Result)});
    plan_.phases.back().is_silent = me_ != leader;
    meet(me_ == leader ? std::vector<Rank>() : std::vector<Rank>{leader});
    if (me_ != leader) copy({Area::Result, leader}, mine(Area::Output), 0, 0);
  }

  void write_two_shot() {
    units(1, 1, n_);
    const std::vector<Rank> all = everyone();
    copy_in(n_, !shape_.whole);
    meet();
    std::vector<Operand> targets{mine(Area::Output)};
    bool publishes = false;
    for (const Rank rank : all) {
      note_staging(!reach(rank).input || !reach(rank).output);
      if (rank == me_) continue;
      if (reach(rank).output) targets.push_back({Area::Output, rank});
      publishes |= !reach(rank).output;
    }
    if (publishes) targets.push_back(mine(Area::Result));
    step(contributions(all), std::move(targets), my_piece(), my_piece(), 1, true);
    meet();
    if (reach(me_).output) return;
    for (const Rank rank : all) {
      if (rank != me_) copy({Area::Result, rank}, mine(Area::Output), as_piece(rank), as_piece(rank));
    }
  }

  void write_pull() {
    units(1, 1, n_);
    const std::vector<Rank> all = everyone();
    for (const Rank rank : all) note_staging(!reach(rank).input);
    copy_in(n_, true);
    meet();
    step(contributions(all), {mine(Area::Output)}, my_piece(), my_piece(), 1, true);
    meet();
    for (uint32_t k = 1; k < n_; ++k) {
      const Rank rank = static_cast<Rank>((my_piece() + k) % n_);
      copy({Area::Output, rank}, mine(Area::Output), as_piece(rank), as_piece(rank));
    }
    meet();
  }

  void write_domains() {
    const std::vector<Rank>& group = my_group();
    const auto parts = static_cast<uint32_t>(group.size());
    units(1, 1, parts);
    const auto place = static_cast<uint32_t>(std::ranges::find(group, me_) - group.begin());
    for (const Rank rank : everyone()) note_staging(!reach(rank).input || !reach(rank).output);
    note_staging(true);  // the sums of domains
    if (!reach(me_).input) {
      copy(mine(Area::Input), mine(Area::Stage), 0, 0, place);
      copy(mine(Area::Input), mine(Area::Stage), place + 1, place + 1, parts - place - 1);
    }
    meet();
    step(contributions(group), {mine(Area::Partial)}, place, place);
    std::vector<Operand> partials;
    for (const std::vector<Rank>& other : shape_.groups) partials.push_back({Area::Partial, other[place]});
    meet();
    std::vector<Operand> targets{mine(Area::Output)};
    bool publishes = false;
    for (const Rank rank : group) {
      if (rank == me_) continue;
      if (reach(rank).output) targets.push_back({Area::Output, rank});
      publishes |= !reach(rank).output;
    }
    if (publishes) targets.push_back(mine(Area::Result));
    step(std::move(partials), std::move(targets), place, place, 1, true);
    meet();
    if (reach(me_).output) return;
    for (uint32_t i = 0; i < parts; ++i) {
      if (i != place) copy({Area::Result, group[i]}, mine(Area::Output), i, i);
    }
  }

  void write_reduce() {
    const bool is_root = me_ == root_;
    const std::vector<Rank> all = everyone();
    if (shape_.scheme == NodeScheme::OneShot || shape_.scheme == NodeScheme::GatherRelease) {
      units(1, is_root ? 1 : 0);
      for (const Rank rank : all) note_staging(!reach(rank).input);
      if (!is_root || shape_.whole) copy_in(1, false);
      meet();
      if (is_root) combine_all({mine(Area::Output)});
      meet_if(any_input_reached(all));
      return;
    }
    units(1, is_root ? 1 : 0, n_);
    const bool direct = reach(root_).output;
    for (const Rank rank : all) note_staging(!reach(rank).input || !direct);
    copy_in(n_, !shape_.whole);
    meet();
    const Operand target = is_root || direct ? Operand{Area::Output, root_} : mine(Area::Result);
    step(contributions(all), {target}, my_piece(), my_piece(), 1, true);
    meet();
    if (!is_root || direct) return;
    for (const Rank rank : all) {
      if (rank != me_) copy({Area::Result, rank}, mine(Area::Output), as_piece(rank), as_piece(rank));
    }
  }

  void write_reduce_scatter() {
    units(n_, 1);
    const std::vector<Rank> all = everyone();
    for (const Rank rank : all) note_staging(!reach(rank).input);
    copy_in(n_, true);
    meet();
    step(contributions(all), {mine(Area::Output)}, my_piece(), 0, 1, true);
    meet_if(any_input_reached(all));
  }

  void write_allgather() {
    units(1, n_);
    const std::vector<Rank> all = everyone();
    for (const Rank rank : all) note_staging(!reach(rank).input);
    copy_in(1, false);
    meet();
    for (uint32_t k = 0; k < n_; ++k) {  // everybody begins with another one
      const Rank rank = static_cast<Rank>((my_piece() + k) % n_);
      if (rank == me_ && plan_.in_place) continue;
      copy(contribution(rank), mine(Area::Output), 0, as_piece(rank));
    }
    meet_if(any_input_reached(all));
  }

  void write_alltoall() {
    units(n_, n_);
    const std::vector<Rank> all = everyone();
    CCOM_ASSERT(!plan_.in_place || !reach(me_).input);
    for (const Rank rank : all) note_staging(!reach(rank).input);
    copy_in(n_, true);
    meet();
    for (uint32_t k = 0; k < n_; ++k) {
      const Rank rank = static_cast<Rank>((my_piece() + k) % n_);
      if (rank == me_ && plan_.in_place) continue;
      copy(contribution(rank), mine(Area::Output), my_piece(), as_piece(rank));
    }
    meet_if(any_input_reached(all));
  }

  void write_broadcast() {
    const bool is_root = me_ == root_;
    units(is_root ? 1 : 0, 1);
    note_staging(!reach(root_).input);
    if (is_root) copy_in(1, false);
    meet();
    if (!is_root || !plan_.in_place) copy(contribution(root_), mine(Area::Output), 0, 0);
    meet_if(reach(root_).input);
  }

  void write_gather() {
    const bool is_root = me_ == root_;
    units(1, is_root ? n_ : 0);
    bool reached = false;
    for (const Rank rank : everyone()) {
      note_staging(!reach(rank).input);
      reached |= rank != root_ && reach(rank).input;
    }
    if (!is_root) copy_in(1, false);
    meet();
    for (const Rank rank : is_root ? everyone() : std::vector<Rank>()) {
      if (rank == me_ && plan_.in_place) continue;
      copy(contribution(rank), mine(Area::Output), 0, as_piece(rank));
    }
    meet_if(reached);
  }

  void write_scatter() {
    const bool is_root = me_ == root_;
    units(is_root ? n_ : 0, 1);
    note_staging(!reach(root_).input);
    if (is_root) copy_in(n_, true);
    meet();
    if (!is_root || !plan_.in_place) copy(contribution(root_), mine(Area::Output), my_piece(), 0);
    meet_if(reach(root_).input);
  }

  static uint32_t as_piece(Rank rank) { return static_cast<uint32_t>(rank); }

  const Rank me_;
  const uint32_t n_;
  const Rank root_;
  const NodeShape& shape_;
  std::span<const Reach> reach_;
  NodePlan plan_;
};

}  // namespace

NodePlan node_plan(const Call& call, const NodeShape& shape, std::span<const Reach> reach) {
  CCOM_ASSERT(reach.size() == static_cast<size_t>(call.nranks));
  return Author(call, shape, reach).write();
}

}  // namespace ccom
