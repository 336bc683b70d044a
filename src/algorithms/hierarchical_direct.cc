// SPDX-License-Identifier: Apache-2.0
//
// Programs over hosts whose sums are canonical (SumOrder): each rank combines a slice of all ranks' vectors, all p
// parts at once, wherever the ranks are.
//
//   allreduce   among all: each slice from everybody to the rank with its number, which combines;
//               across: slices to the owners of the same local rank on all hosts;  inside: allgather
//   reduce      among all: the same;  among all: slices to the root
//
// Messages of a rank, for H hosts: p - 1 for the sums, H - 1 for an allreduce's slices. For n bytes a host of g ranks
// sends g n (H-1)/H for the sums and n (H-1)/H for the slices: (g+1)/2 times what sums of hosts take
// ("hierarchical_sharded"). One rounding. Source: the direct exchange of direct.cc, with the second half of Thakur,
// Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, 2005.
#include "algorithms/hierarchical_author.h"
#include "base/assert.h"

namespace ccom {
namespace {

class DirectAuthor final : public ProgramAuthor {
 public:
  using ProgramAuthor::ProgramAuthor;

  Program write() {
    program_.algorithm = "hierarchical_direct";
    program_.slices = static_cast<uint32_t>(program_.nranks);
    program_.collective == Collective::AllReduce ? write_allreduce() : write_reduce();
    return std::move(program_);
  }

 private:
  // A stage of messages of all ranks; lists_of(rank).
  template <typename ListsOf>
  void among_all(Collective collective, bool sums, ListsOf lists_of) {
    Stage stage{.where = Stage::Where::Across,
                .collective = collective,
                .sums = sums,
                .completes = sums,
                .messages = shape_.across};
    std::vector<StageMember>& group = stage.groups.emplace_back();
    for (Rank rank = 0; rank < program_.nranks; ++rank) {
      const Lists lists = lists_of(static_cast<uint32_t>(rank));
      group.push_back({rank, lists.first, lists.second});
    }
    program_.stages.push_back(std::move(stage));
  }

  // Each slice to the rank with its number, where place_of(rank) says.
  template <typename PlaceOf>
  void sum_slices(PlaceOf place_of) {
    const uint32_t whole = list(for_slices([](uint32_t s) { return in(s, s); }));
    among_all(Collective::ReduceScatter, true, [&](uint32_t rank) -> Lists { return {whole, list({place_of(rank)})}; });
  }

  void write_allreduce() {
    sum_slices([](uint32_t rank) { return out(rank, rank); });
    inside(
        Collective::Gather, shape_.spread_inside, false, [&](size_t host) { return has_more_ranks(host); },
        [&](size_t host, size_t local) -> Lists {
          if (local >= owners_) return {list(in_output({unit_of(host, local)})), nothing_};
          List gets = in_output(carried(host, local));
          gets.erase(gets.begin());
          return {nothing_, list(std::move(gets))};
        });
    across(Collective::AllGather, false, [&](size_t host, size_t owner) -> Lists {
      List gets;
      for (size_t other = 0; other < hosts_.size(); ++other) {
        if (other != host) std::ranges::copy(in_output(carried(other, owner)), std::back_inserter(gets));
      }
      return {list(in_output(carried(host, owner))), list(std::move(gets))};
    });
    share_outputs();
  }

  void write_reduce() {
    program_.scratch_slots = 1;
    const auto root = static_cast<uint32_t>(program_.root);
    sum_slices([&](uint32_t rank) { return rank == root ? out(rank, rank) : slot(rank, 0); });
    among_all(Collective::Gather, false, [&](uint32_t rank) -> Lists {
      if (rank != root) return {list({slot(rank, 0)}), nothing_};
      List gets = for_slices([](uint32_t s) { return out(s, s); });
      std::erase(gets, out(root, root));
      return {nothing_, list(std::move(gets))};
    });
  }
};

}  // namespace

Program hierarchical_direct_program(Collective collective, Rank root, const HierarchicalShape& shape) {
  CCOM_ASSERT(collective == Collective::AllReduce || collective == Collective::Reduce);
  CCOM_ASSERT(shape.hosts.size() > 1 && shape.across.kind == MessageAlgorithm::Kind::Blocks);
  return DirectAuthor(collective, root, shape).write();
}

}  // namespace ccom
