// SPDX-License-Identifier: Apache-2.0
//
// From a shape to one rank's plan: the entry points of this room. Pure functions of their arguments.
#pragma once

#include <compare>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/builder.h"
#include "algorithms/shape.h"
#include "plan/plan.h"

namespace ccom {

// Who asks for what.
struct Call {
  Collective collective = Collective::AllReduce;
  Rank rank = 0;
  int nranks = 1;
  Rank root = -1;         // rooted collectives
  bool in_place = false;  // this rank's buffers alias as the C API allows
};

// A plan without steps yet, with the call's buffers.
Plan empty_plan(const Call& call, const std::string& algorithm);

// AllReduce, ReduceScatter, AllGather and Barrier over a staged shape (staged.cc).
//
// Down the levels each splits the data among the members of a group, up the levels they are put together again; the
// core, if there is one, is an allreduce of what is left. In place allowed. Every rank computes the same expression for
// a block, so results are bitwise equal. ReduceScatter and AllGather need every rank to be an owner on every level, and
// no core.
Plan staged_plan(const Call& call, const Staged& shape, const std::string& algorithm);
// Whether the shape can serve ReduceScatter and AllGather.
bool divides_evenly(const Staged& shape, int nranks);

// Makes the plans of many ranks: what they share, of the size of the shape, is worked out once. staged_plan does it for
// each plan. Immutable.
class StagedPlans {
 public:
  // `shape` outlives the object. `collective`: AllReduce, or any of those whose units belong to ranks.
  StagedPlans(const Staged& shape, int nranks, Collective collective);
  // Of the same kind of collective.
  Plan make(const Call& call, const std::string& algorithm) const;
  bool divides_evenly() const { return divides_evenly_; }

 private:
  Plan allreduce(const Call& call, const std::string& algorithm) const;
  Plan by_owner(const Call& call, const std::string& algorithm) const;
  Plan by_position(Plan plan, std::span<const Group> groups) const;

  std::span<const Group> groups_of(Rank rank) const {
    return std::span(groups_).subspan(static_cast<size_t>(rank) * depth_, depth_);
  }

  const Staged& shape_;
  size_t depth_;                    // levels and core
  std::vector<Group> groups_;       // by rank, then level, the core last; ranks is null where it is in none
  std::vector<uint32_t> block_of_;  // by position: units are those of the ranks that end up owning them
  NumberList order_, position_of_;  // the same and its inverse, of a shape by position
  uint32_t unit_blocks_ = 0;
  bool divides_evenly_ = false;
};

// Plans of AllToAll by dimensions (dimension_exchange.cc), for many ranks. The shape's levels are the dimensions, in
// turn: those of a Torus and a Ring by neighbours, others directly. In place allowed, through scratch. Immutable.
class ExchangePlans {
 public:
  ExchangePlans(const Staged& shape, int nranks);
  // Whether the levels' groups make a grid of all ranks.
  bool is_grid() const { return is_grid_; }
  Plan make(const Call& call, const std::string& algorithm) const;

 private:
  friend class ExchangeWriter;
  struct Dimension {
    uint32_t size = 1;
    bool is_ring = false;  // only neighbours are linked
  };
  void find_places(const Staged& shape);
  void find_orders(const Level& level);
  bool groups_are_lines(const Staged& shape) const;
  uint32_t index_of(Rank rank, const std::vector<uint32_t>& dims) const;

  uint32_t ranks_, streams_ = 1;
  bool is_grid_ = true;
  std::vector<Dimension> dimensions_{};
  std::vector<std::vector<uint32_t>> coordinates_{};  // by rank, then dimension
  std::vector<Rank> rank_at_{};                       // by index in the order of the dimensions
  std::vector<std::vector<uint32_t>> orders_{};       // of dimensions, by stream
  NumberList order_{}, last_{};                       // from the input; into the output
  std::vector<NumberList> rotations_{};               // by dimension
};

// Plans of Gather and Scatter over a tree by position (unit_tree.cc), for many ranks. Immutable.
class UnitTreePlans {
 public:
  // `tree` outlives the object.
  explicit UnitTreePlans(const Tree& tree);
  Plan make(const Call& call, const std::string& algorithm) const;
  // By rank: on the edge to its parent.
  static std::vector<int> messages(const Tree& tree);

 private:
  class Subtrees;
  class UnitTreeWriter;
  std::shared_ptr<const Subtrees> subtrees_;
  NumberList order_;
};

// Every collective but AllToAll over any tree (tree.cc): the rooted ones with tree.root as root, the others as a way up
// to it and a way down. Only tree edges carry data.
Plan tree_plan(const Call& call, const Tree& tree, const std::string& algorithm);
// AllReduce, Broadcast and Reduce with the vector shared out over several trees by their chunks. Trees that have an
// edge in common use channels of their own there.
Plan tree_plan(const Call& call, const std::vector<Tree>& trees, const std::string& algorithm);
int channels_of(const std::vector<Tree>& trees);

// The same plans for many ranks. Immutable.
class TreePlans {
 public:
  // `trees` outlive the object.
  explicit TreePlans(const std::vector<Tree>& trees);
  Plan make(const Call& call, const std::string& algorithm) const;
  std::span<const Rank> children(size_t tree, Rank rank) const;  // ascending
  // How many hang at a rank, itself counted.
  uint32_t ranks_from(size_t tree, Rank rank) const { return sizes_[tree][static_cast<size_t>(rank)]; }
  // Of the messages between a rank and its parent.
  uint8_t channel(size_t tree, Rank rank) const { return channels_[tree][static_cast<size_t>(rank)]; }
  int channels() const;
  // All blocks of all trees in the order in which the rank's sums of them are due (Tree::lead).
  struct Due {
    int64_t when;
    size_t tree;
    uint32_t block;  // of the tree's share
    auto operator<=>(const Due&) const = default;
  };
  std::vector<Due> blocks_due(Rank rank) const;
  const std::vector<Tree>& trees() const { return trees_; }

 private:
  const std::vector<Tree>& trees_;
  std::vector<std::vector<uint32_t>> first_child_;  // by tree and rank: into children_
  std::vector<std::vector<uint32_t>> sizes_;        // of subtrees
  std::vector<std::vector<Rank>> children_;
  std::vector<std::vector<uint8_t>> channels_;
};

// AllReduce of short vectors over many hosts (mixed_radix.cc), through all of a host's ranks at once. A Barrier gets
// the same plan, an allreduce (of nothing). In place allowed; every rank computes the same expression.
Plan mixed_radix_plan(const Call& call, const Radix& shape, const std::string& algorithm);

// AllToAll, everybody with everybody (alltoall.cc): p - 1 messages of one block, in place through scratch.
Plan pairwise_alltoall_plan(const Call& call);
// AllToAll in ceil(lg p) rounds of one message each (bruck.cc), for short blocks of many ranks. In place allowed.
Plan bruck_alltoall_plan(const Call& call);
// AllToAll in lg p rounds of one message each (bine.cc), a power of two of ranks. In place allowed.
Plan bine_alltoall_plan(const Call& call);
// AllToAll where not all links exist: an allgather of everything, of which each rank keeps its part. p times the bytes.
// `gather` is this rank's AllGather plan, made out of place.
Plan routed_alltoall_plan(const Call& call, const Plan& gather);

// Send (call.root < 0: to `peer`) and receive as one-step plans (alltoall.cc).
Plan send_plan(Rank rank, int nranks, Rank peer);
Plan receive_plan(Rank rank, int nranks, Rank peer);

}  // namespace ccom
