// SPDX-License-Identifier: Apache-2.0
//
// Room-private: what the authors of programs over hosts share: owners, lists, stages inside and across hosts.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "algorithms/hierarchical.h"

namespace ccom {

inline size_t smallest(const HostRanks& hosts) { return std::ranges::min(hosts, {}, &std::vector<Rank>::size).size(); }
inline size_t largest(const HostRanks& hosts) { return std::ranges::max(hosts, {}, &std::vector<Rank>::size).size(); }

class ProgramAuthor {
 public:
  ProgramAuthor(Collective collective, Rank root, const HierarchicalShape& shape)
      : shape_(shape), hosts_(shape.hosts), owners_(static_cast<size_t>(shape.owners)) {
    program_.algorithm = shape.owners == 1 ? "hierarchical_leaders" : "hierarchical_sharded";
    program_.collective = collective;
    program_.root = root;
    program_.nranks = 0;
    for (size_t host = 0; host < hosts_.size(); ++host) {
      program_.nranks += static_cast<int>(hosts_[host].size());
      const auto found = std::ranges::find(hosts_[host], root);
      if (found == hosts_[host].end()) continue;
      root_host_ = host;
      root_local_ = static_cast<size_t>(found - hosts_[host].begin());
    }
    program_.tile_bytes = shape.tile_bytes;
    program_.lanes = shape.lanes;
    nothing_ = program_.add_list({});
  }

 protected:
  using List = std::vector<BlockAt>;
  using Lists = std::pair<uint32_t, uint32_t>;  // gives, gets

  // Local rank of owner `owner` of a host.
  size_t owner_at(size_t host, size_t owner) const {
    return owners_ > 1 || program_.root < 0 ? owner : std::min(root_local_, hosts_[host].size() - 1);
  }
  bool owns(size_t host, size_t local) const { return owners_ > 1 ? local < owners_ : local == owner_at(host, 0); }
  bool is_root(size_t host, size_t local) const {
    return program_.root >= 0 && host == root_host_ && local == root_local_;
  }
  uint32_t list(List list) { return list.empty() ? nothing_ : program_.add_list(std::move(list)); }
  static BlockAt in(uint32_t block, uint32_t index) { return {block, Buffer::Input, index}; }
  static BlockAt out(uint32_t block, uint32_t index) { return {block, Buffer::Output, index}; }
  static BlockAt slot(uint32_t block, uint32_t index) { return {block, Buffer::Scratch, index}; }
  uint32_t slices() const { return program_.slices; }
  template <typename Fn>
  List for_slices(Fn at) const {
    List list;
    for (uint32_t slice = 0; slice < slices(); ++slice) list.push_back(at(slice));
    return list;
  }

  // The units that travel through an owner of a host: its own first, then those of the local ranks behind the owners.
  std::vector<uint32_t> carried(size_t host, size_t owner) const {
    std::vector<uint32_t> units;
    for (size_t local = owner; local < hosts_[host].size(); local += owners_) {
      units.push_back(static_cast<uint32_t>(hosts_[host][local]));
    }
    return units;
  }
  std::vector<uint32_t> carried_for_all(size_t owner) const {
    std::vector<uint32_t> units;
    for (size_t host = 0; host < hosts_.size(); ++host) {
      for (const uint32_t unit : carried(host, owner)) units.push_back(unit);
    }
    return units;
  }
  bool has_more_ranks(size_t host) const { return hosts_[host].size() > owners_; }
  uint32_t unit_of(size_t host, size_t local) const { return static_cast<uint32_t>(hosts_[host][local]); }
  // Units of outputs that hold one for each rank.
  static List in_output(const std::vector<uint32_t>& units) {
    List list;
    for (const uint32_t unit : units) list.push_back(out(unit, unit));
    return list;
  }

  // A stage of all ranks of the hosts that `takes_part` says; lists_of(host, local).
  template <typename TakesPart, typename ListsOf>
  void inside(Collective collective, const NodeChoice& choice, bool sums, TakesPart takes_part, ListsOf lists_of) {
    Stage stage{.where = Stage::Where::Host, .collective = collective, .sums = sums, .node = choice};
    for (size_t host = 0; host < hosts_.size(); ++host) {
      if (!takes_part(host)) continue;
      std::vector<StageMember>& group = stage.groups.emplace_back();
      for (size_t local = 0; local < hosts_[host].size(); ++local) {
        const Lists lists = lists_of(host, local);
        group.push_back({hosts_[host][local], lists.first, lists.second});
      }
    }
    if (stage.groups.empty()) return;
    program_.stages.push_back(std::move(stage));
  }

  // A stage between hosts, a group for each owner; lists_of(host, owner).
  template <typename ListsOf>
  void across(Collective collective, bool sums, ListsOf lists_of) {
    const bool rooted = collective == Collective::Broadcast || collective == Collective::Reduce;
    Stage stage{.where = Stage::Where::Across,
                .collective = collective,
                .root = rooted ? static_cast<int>(root_host_) : -1,
                .sums = sums,
                .completes = sums,
                .messages = shape_.across};
    for (size_t owner = 0; owner < owners_; ++owner) {
      std::vector<StageMember>& group = stage.groups.emplace_back();
      for (size_t host = 0; host < hosts_.size(); ++host) {
        const Lists lists = lists_of(host, owner);
        group.push_back({hosts_[host][owner_at(host, owner)], lists.first, lists.second});
      }
    }
    program_.stages.push_back(std::move(stage));
  }

  // The host's sum of each slice, in slot `target` of its owner. own: where every rank has its slices.
  template <typename TakesPart>
  void sum_inside(TakesPart takes_part, List own, uint32_t target) {
    const uint32_t whole = list(std::move(own));
    inside(owners_ > 1 ? Collective::ReduceScatter : Collective::Reduce, shape_.reduce_inside, true, takes_part,
           [&](size_t host, size_t local) -> Lists {
             const auto slice = static_cast<uint32_t>(owners_ > 1 ? local : 0);
             return {whole, owns(host, local) ? list({slot(slice, target)}) : nothing_};
           });
  }

  // Slices from the owners' outputs to all others'.
  template <typename TakesPart>
  void spread_inside(TakesPart takes_part) {
    inside(owners_ > 1 ? Collective::AllGather : Collective::Broadcast, shape_.spread_inside, false, takes_part,
           [&](size_t host, size_t local) -> Lists {
             const bool gives = owns(host, local);
             const auto own = static_cast<uint32_t>(owners_ > 1 ? local : 0);
             List gets = for_slices([](uint32_t s) { return out(s, s); });
             if (gives) std::erase(gets, out(own, own));
             return {gives ? list({out(own, own)}) : nothing_, list(std::move(gets))};
           });
  }

  // Slices from slot `held` of the owners of the root's host to the root's output, which has its own already.
  void gather_at_root(uint32_t held) {
    if (owners_ == 1) return;  // the root's own
    inside(
        Collective::Gather, shape_.spread_inside, false, [&](size_t host) { return host == root_host_; },
        [&](size_t host, size_t local) -> Lists {
          const bool at_root = is_root(host, local);
          const auto own = static_cast<uint32_t>(local);
          List gets = for_slices([](uint32_t s) { return out(s, s); });
          if (owns(host, local)) std::erase(gets, out(own, own));
          return {owns(host, local) && !at_root ? list({slot(own, held)}) : nothing_,
                  at_root ? list(std::move(gets)) : nothing_};
        });
  }

  // From the owners' outputs, which hold what they carry for all hosts, to all others'.
  void share_outputs() {
    inside(Collective::AllGather, shape_.spread_inside, false, everywhere, [&](size_t, size_t local) -> Lists {
      List gives, gets;
      for (size_t owner = 0; owner < owners_; ++owner) {
        List units = in_output(carried_for_all(owner));
        std::ranges::copy(units, std::back_inserter(owner == local ? gives : gets));
      }
      std::ranges::sort(gets, {}, &BlockAt::index);
      return {list(std::move(gives)), list(std::move(gets))};
    });
  }

  // ---- Other types than the call's ----------------------------------------------------------------------------------

  void set_type_since(size_t first, UnitType type) {
    for (size_t i = first; i < program_.stages.size(); ++i)
      program_.stages[i].gives_type = program_.stages[i].gets_type = type;
  }

  // Every rank's `own` blocks as float32, in the first slots.
  void widen(const List& own) {
    Stage& stage = alone(UnitType::Call, UnitType::Float32);
    List widened;
    for (const BlockAt& at : own) widened.push_back(slot(at.block, static_cast<uint32_t>(widened.size())));
    const uint32_t gives = list(own), gets = list(std::move(widened));
    for (const std::vector<Rank>& host : hosts_) {
      for (const Rank rank : host) stage.groups.push_back({{rank, gives, gets}});
    }
  }

  // By the owners of the hosts that `takes_part` says; lists_of(host, owner) says from where to where.
  template <typename TakesPart, typename ListsOf>
  void convert(UnitType from, UnitType to, TakesPart takes_part, ListsOf lists_of) {
    Stage& stage = alone(from, to);
    for (size_t host = 0; host < hosts_.size(); ++host) {
      for (size_t owner = 0; takes_part(host) && owner < owners_; ++owner) {
        const Lists lists = lists_of(host, owner);
        stage.groups.push_back({{hosts_[host][owner_at(host, owner)], lists.first, lists.second}});
      }
    }
  }

  static bool everywhere(size_t) { return true; }

  const HierarchicalShape& shape_;
  const HostRanks& hosts_;
  const size_t owners_;
  size_t root_host_ = 0, root_local_ = 0;
  uint32_t nothing_ = 0;  // the empty list
  Program program_;

 private:
  Stage& alone(UnitType from, UnitType to) {
    return program_.stages.emplace_back(
        Stage{.where = Stage::Where::Host, .collective = Collective::AllGather, .gives_type = from, .gets_type = to});
  }
};

// AllReduce and Reduce whose sums cross hosts as shape.wire (hierarchical_typed.cc): Reduce as Float32 only.
Program hierarchical_typed_program(Collective collective, Rank root, const HierarchicalShape& shape);

// The collectives whose units belong to ranks: reduce-scatter, allgather, alltoall, gather, scatter
// (hierarchical_units.cc).
Program hierarchical_unit_program(Collective collective, Rank root, const HierarchicalShape& shape);

}  // namespace ccom
