// SPDX-License-Identifier: Apache-2.0
#include "algorithms/node.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {
namespace {

// Writes one rank's plan.
class Author {
 public:
  Author(const NodeTask& task, Rank rank, bool in_place, const NodeShape& shape, std::span<const Reach> reach)
      : me_(rank), n_(static_cast<uint32_t>(task.nranks)), root_(task.root), task_(task), shape_(shape), reach_(reach) {
    plan_.collective = task.collective;
    plan_.algorithm = name_of(shape.scheme);
    plan_.rank = rank;
    plan_.nranks = task.nranks;
    plan_.root = task.root;
    plan_.in_place = in_place;
    plan_.phases.emplace_back();
  }

  NodePlan write() {
    if (task_.collective == Collective::Barrier) {
      meet();
    } else if (shape_.scheme == NodeScheme::Direct) {
      write_direct();
    } else {
      CCOM_ASSERT(task_.collective == Collective::AllReduce || task_.collective == Collective::Reduce);
      task_.collective == Collective::AllReduce ? write_allreduce() : write_reduce();
    }
    return std::move(plan_);
  }

 private:
  const Reach& reach(Rank rank) const { return reach_[static_cast<size_t>(rank)]; }
  uint32_t my_piece() const { return static_cast<uint32_t>(me_); }
  // Of two_shot: nobody else reads a rank's own piece, but all are to be shown where the shape says so.
  uint32_t hidden_piece() const { return shape_.whole ? UINT32_MAX : my_piece(); }
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
  NodeStep& step(std::vector<Operand> sources, std::vector<Operand> targets, uint32_t source_piece,
                 uint32_t target_piece, uint32_t count = 1, bool completes = false) {
    plan_.phases.back().steps.push_back(
        {std::move(sources), std::move(targets), source_piece, target_piece, count, completes});
    return plan_.phases.back().steps.back();
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

  // Shows `pieces` of the input to the others, all but piece `own`, if there is such.
  void copy_in(uint32_t pieces, uint32_t own = UINT32_MAX) {
    if (reach(me_).input) return;
    copy(mine(Area::Input), mine(Area::Stage), 0, 0, std::min(own, pieces));
    if (own < pieces) copy(mine(Area::Input), mine(Area::Stage), own + 1, own + 1, pieces - own - 1);
  }
  // Where a sum goes that these ranks get: into the outputs that are reached, and into shared memory for the others.
  std::vector<Operand> targets_for(const std::vector<Rank>& ranks) const {
    std::vector<Operand> targets{mine(Area::Output)};
    bool publishes = false;
    for (const Rank rank : ranks) {
      if (rank == me_) continue;
      if (reach(rank).output) targets.push_back({Area::Output, rank});
      publishes |= !reach(rank).output;
    }
    if (publishes) targets.push_back(mine(Area::Result));
    return targets;
  }
  // Piece i from the i-th of these ranks, which has combined it for `readers`.
  void copy_results(const std::vector<Rank>& ranks, const std::vector<Rank>& readers) {
    for (uint32_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == me_) continue;
      const bool alone = std::ranges::none_of(
          readers, [&](Rank rank) { return rank != me_ && rank != ranks[i] && !reach(rank).output; });
      step({{Area::Result, ranks[i]}}, {mine(Area::Output)}, i, i).is_last_reader = alone;
    }
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
    copy_in(1);
    meet();
    combine_all({mine(Area::Output)}).is_last_reader = n_ == 2;
    meet_if(any_input_reached(all));
  }

  // All contributions, in rank order.
  NodeStep& combine_all(std::vector<Operand> targets) {
    return step(contributions(everyone()), std::move(targets), 0, 0, 1, task_.completes);
  }
  // This rank's piece of everybody's vector, which it alone reads.
  void combine_mine(const std::vector<Rank>& ranks, std::vector<Operand> targets, uint32_t piece, bool completes) {
    step(contributions(ranks), std::move(targets), piece, piece, 1, completes).is_last_reader = true;
  }

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
    for (const Rank rank : all) note_staging(!reach(rank).input || !reach(rank).output);
    copy_in(n_, hidden_piece());
    meet();
    combine_mine(all, targets_for(all), my_piece(), task_.completes);
    meet();
    if (!reach(me_).output) copy_results(all, all);
  }

  void write_pull() {
    units(1, 1, n_);
    const std::vector<Rank> all = everyone();
    for (const Rank rank : all) note_staging(!reach(rank).input);
    copy_in(n_, my_piece());
    meet();
    combine_mine(all, {mine(Area::Output)}, my_piece(), task_.completes);
    meet();
    for (uint32_t k = 1; k < n_; ++k) {
      const Rank rank = static_cast<Rank>((my_piece() + k) % n_);
      copy({Area::Output, rank}, mine(Area::Output), static_cast<uint32_t>(rank), static_cast<uint32_t>(rank));
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
    copy_in(parts, place);
    meet();
    combine_mine(group, {mine(Area::Partial)}, place, false);
    std::vector<Operand> partials;
    for (const std::vector<Rank>& other : shape_.groups) partials.push_back({Area::Partial, other[place]});
    meet();
    step(std::move(partials), targets_for(group), place, place, 1, task_.completes);
    meet();
    if (!reach(me_).output) copy_results(group, group);
  }

  void write_reduce() {
    const bool is_root = me_ == root_;
    const std::vector<Rank> all = everyone();
    if (shape_.scheme == NodeScheme::OneShot || shape_.scheme == NodeScheme::GatherRelease) {
      units(1, is_root ? 1 : 0);
      for (const Rank rank : all) note_staging(!reach(rank).input);
      if (!is_root || shape_.whole) copy_in(1);
      meet();
      if (is_root) combine_all({mine(Area::Output)}).is_last_reader = true;
      meet_if(any_input_reached(all));
      return;
    }
    units(1, is_root ? 1 : 0, n_);
    const bool direct = reach(root_).output;
    for (const Rank rank : all) note_staging(!reach(rank).input || !direct);
    copy_in(n_, hidden_piece());
    meet();
    const Operand target = is_root || direct ? Operand{Area::Output, root_} : mine(Area::Result);
    combine_mine(all, {target}, my_piece(), task_.completes);
    meet();
    if (is_root && !direct) copy_results(all, {root_});
  }

  const std::vector<uint32_t>& gives(Rank rank) const { return task_.blocks.gives[static_cast<size_t>(rank)]; }
  const std::vector<uint32_t>& gets(Rank rank) const { return task_.blocks.gets[static_cast<size_t>(rank)]; }

  // How many others get a block of the giver's.
  int takers(uint32_t block, Rank giver) const {
    int count = 0;
    for (Rank rank = 0; rank < plan_.nranks; ++rank) {
      count += rank != giver && std::ranges::find(gets(rank), block) != gets(rank).end() ? 1 : 0;
    }
    return count;
  }
  bool is_taken(uint32_t block, Rank giver) const { return takers(block, giver) > 0; }

  // Shows the blocks that others get, by runs of them.
  void show_taken() {
    const std::vector<uint32_t>& blocks = gives(me_);
    for (uint32_t first = 0; first < blocks.size();) {
      uint32_t end = first;
      while (end < blocks.size() && is_taken(blocks[end], me_)) ++end;
      copy(mine(Area::Input), mine(Area::Stage), first, first, end - first);
      first = end + 1;
    }
  }

  void write_direct() {
    units(static_cast<uint32_t>(gives(me_).size()), static_cast<uint32_t>(gets(me_).size()));
    bool reached = false;
    for (const Rank rank : everyone()) {
      const bool shows = std::ranges::any_of(gives(rank), [&](uint32_t block) { return is_taken(block, rank); });
      CCOM_ASSERT(rank != me_ || task_.collective != Collective::AllToAll || !plan_.in_place || !reach(rank).input);
      note_staging(shows && !reach(rank).input);
      reached |= shows && reach(rank).input;
    }
    if (!reach(me_).input) show_taken();
    meet();
    const auto count = static_cast<uint32_t>(gets(me_).size());
    for (uint32_t k = 0; k < count; ++k) take(static_cast<uint32_t>((uint64_t{my_piece()} * count / n_ + k) % count));
    meet_if(reached);
  }

  // Fills unit `target` of the output. Everybody begins with another one, so that not all are at one rank's memory.
  void take(uint32_t target) {
    const uint32_t block = gets(me_)[target];
    std::vector<Operand> sources;
    uint32_t piece = 0;
    int most_takers = 0;  // of what others show
    for (const Rank rank : everyone()) {
      const auto found = std::ranges::find(gives(rank), block);
      if (found == gives(rank).end()) continue;
      if (rank != me_) most_takers = std::max(most_takers, takers(block, rank));
      if (rank == me_ && !task_.sums && plan_.in_place) return;  // it lies there already
      piece = static_cast<uint32_t>(found - gives(rank).begin());
      sources.push_back(contribution(rank));
    }
    CCOM_ASSERT(!sources.empty() && (task_.sums || sources.size() == 1));
    step(std::move(sources), {mine(Area::Output)}, piece, target, 1, task_.completes).is_last_reader = most_takers == 1;
  }

  const Rank me_;
  const uint32_t n_;
  const Rank root_;
  const NodeTask& task_;
  const NodeShape& shape_;
  std::span<const Reach> reach_;
  NodePlan plan_;
};

}  // namespace

NodePlan node_plan(const NodeTask& task, Rank rank, bool in_place, const NodeShape& shape,
                   std::span<const Reach> reach) {
  CCOM_ASSERT(reach.size() == static_cast<size_t>(task.nranks) && rank >= 0 && rank < task.nranks);
  return Author(task, rank, in_place, shape, reach).write();
}

}  // namespace ccom
