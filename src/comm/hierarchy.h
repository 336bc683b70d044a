// SPDX-License-Identifier: Apache-2.0
//
// Collectives over several hosts with equally many ranks each: through shared memory inside, by messages across.
//
//   allreduce, hosts A {0 1} and B {2 3}    reduce-scatter inside, allreduce across, allgather inside
//
//     0 -- 1      Every rank ends the first phase with the host's sum of its share (here half), exchanges it with the
//     |    |      rank of the same place on every other host, and the shares are put together again. So every rank
//     2 -- 3      drives its own share, all NICs work, and a host sends what the planner's algorithm for one rank per
//                 host sends: 2 n (H-1)/H bytes for n bytes on H hosts, which is the bound.
//
// Long calls run in tiles: while some are under way across, the next is summed inside and the last one is gathered, so
// the wire never waits for memory. Short calls, and all on networks that one rank can fill, go through one rank of each
// host instead, its speaker: reduce inside, allreduce among speakers, broadcast inside.
//
// A composition of parts that are proved on their own: node plans (plan/node_verify.h) and, for the ranks of one place,
// plans for as many ranks as there are hosts (plan/verify.h). Source of the scheme: see algorithms/staged.cc.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "comm/plan_cache.h"
#include "comm/request.h"
#include "engine/engine.h"
#include "comm/tuned_node.h"
#include "planner/host_level.h"
#include "setup/config.h"

namespace ccom {

class Hierarchy {
 public:
  struct Parts {
    TunedNode& node;
    Engine& engine;
    ChannelSource& channels;  // channels() to the ranks of the same place
  };
  // That tiles under way across use in turn.
  static int channels(const HostLevel& level);

  // All references outlive it. level: of this rank, host_level() of the topology.
  Hierarchy(Parts parts, const HostLevel& level, const Topology& topology, InterHostMode crossing);
  Hierarchy(const Hierarchy&) = delete;
  Hierarchy& operator=(const Hierarchy&) = delete;

  // Blocking; every rank makes the call, one of those that the level serves(). `envelope` is the call's, with tile 0.
  // input and output must not overlap but for the in-place forms of the C API.
  Status run(const Request& request, Envelope envelope, Deadline deadline);

 private:
  static constexpr int kTiles = 4;  // under way at a time

  // Peers of a plan across are hosts; its channels lead to the ranks of our place there.
  class Across final : public ChannelSource {
   public:
    Across(ChannelSource& channels, const std::vector<Rank>& mates, int first)
        : channels_(channels), mates_(mates), first_(first) {}
    Result<ChannelRef> open(Rank host, int index) override {
      return channels_.open(mates_[static_cast<size_t>(host)], first_ + index);
    }

   private:
    ChannelSource& channels_;
    const std::vector<Rank>& mates_;
    const int first_;
  };
  struct Root {
    int host = 0, place = 0;
  };
  // A part of a call that runs across, in a slot of the engine: a collective of one rank per host.
  struct Part {
    Collective collective = Collective::AllReduce;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    size_t count = 0;
    size_t stride = 0;  // of units; 0: count. Also tells the planner how long the whole call is
    int root = -1;      // a host
    bool in_place = false;
  };

  Status run_by_speakers(const Request& request);
  Status run_by_shares(const Request& request);
  Status run_reduce_scatter(const Request& request);
  Status run_allgather(const Request& request);
  Status run_alltoall(const Request& request);
  Status run_barrier();

  // Runs `enter(tile)`, which works inside and starts a crossing in slot tile % kTiles, and `leave(tile)`, which
  // works inside with what came; one tile enters before the one before it leaves.
  template <typename Enter, typename Leave>
  Status in_tiles(size_t tiles, Enter enter, Leave leave) {
    constexpr size_t kAhead = kTiles - 1;
    for (size_t tile = 0; tile < tiles + kAhead; ++tile) {
      if (tile < tiles) CCOM_TRY(enter(tile));
      if (tile >= kAhead && tile - kAhead < tiles) CCOM_TRY(leave(tile - kAhead));
    }
    return {};
  }
  Status inside(const TunedCall& call);
  Status start(size_t tile, const Part& part);
  Status finish(size_t tile);
  Status cross(const Part& part);
  TunedCall node_call(Collective collective, const std::byte* input, std::byte* output, size_t count) const;
  std::byte* scratch(size_t tile, size_t bytes);
  size_t tile_elements(size_t elements, size_t granule, size_t parts) const;
  Root root_of(Rank rank) const;

  Parts parts_;
  const HostLevel level_;
  const std::vector<Place> places_;  // by rank
  const Topology across_topology_;
  // Longer calls are shared by all ranks of a host. Shorter ones: what the others would send costs less than their
  // system calls.
  size_t speakers_up_to_bytes_ = size_t{16} << 10;
  std::array<Across, kTiles> across_;
  std::array<std::optional<PlanCache>, kTiles> plans_;
  std::array<std::shared_ptr<const BoundPlan>, kTiles> running_;
  std::array<std::vector<std::byte>, kTiles> scratch_;

  // Of the present call.
  DataType type_{};
  ReduceOp op_{};
  size_t element_bytes_ = 1;
  Envelope envelope_;
  Deadline deadline_{Clock::time_point{}};
};

}  // namespace ccom
