// SPDX-License-Identifier: Apache-2.0
//
// Ways for messages between ranks of a host that share no link of the imposed fabric: other ranks receive them and send
// them on, whole pieces at a time (store and forward).
//
// A rank that forwards keeps a piece in a buffer of the lane on which it came until the next rank has room in the lane
// on which it goes. Ranks that wait for room in a circle would wait for ever, so a way takes lanes in an order in which
// no circle exists. In rings and tori, dimension by dimension, a message is on lane 0 while it still has to pass the
// end of its row, and on lane 1 from then on, so a lane is never used all the way round; a chain needs one lane. Where
// the graph is another one, or devices have no rank, the lane is the number of hops that are left after this one.
// prove_routes() proves either for what next() answers.
#pragma once

#include <functional>
#include <vector>

#include "topology/topology.h"

namespace ccom {

struct Hop {
  Rank to = -1;  // -1: no way
  int lane = 0;
  friend bool operator==(const Hop&, const Hop&) = default;
};

// Pieces that are received whole before they are sent on: of 16 to 256 KiB. Long ones cost time at every hop, many of
// them the starts of as many messages.
inline constexpr size_t kMostPieceBytes = size_t{256} << 10;
size_t forwarded_piece_bytes(size_t message_bytes, int hops);

// That two ranks can have: with those of messages, what a transport has.
inline constexpr int kMostLanes = 14;

// Immutable.
class RankRoutes {
 public:
  // `topology` must outlive it. Where ways need more lanes, there are none.
  explicit RankRoutes(const Topology& topology, int most_lanes = kMostLanes);

  // Whether two ranks of a host share no link. Of all hosts alike.
  bool are_needed() const { return are_needed_; }
  // 0: nothing is forwarded, because nothing has to be, or because there are no ways.
  int lanes() const { return lanes_; }
  // The next rank from `at` to `to`, two different ranks: `to` itself where they are linked.
  Hop next(Rank at, Rank to) const;
  // The ranks on the way, `to` last; empty if there is none.
  std::vector<Hop> path(Rank from, Rank to) const;

 private:
  struct HostWays {
    bool is_grid = false;
    std::vector<std::vector<Rank>> ranks_on;  // by device
    std::vector<std::vector<int>> hops;       // where it is no grid: to a device, from each; -1: no way, or no rank
  };

  HostWays add_host(int host);
  void count_hops(const Fabric& fabric, HostWays& ways) const;
  Rank on_device(const HostWays& ways, int device, Rank to) const;

  const Topology& topology_;
  std::vector<HostWays> hosts_;
  bool are_needed_ = false;
  int lanes_ = 0;
};

using NextHop = std::function<Hop(Rank at, Rank to)>;

// That messages between any two ranks of a host arrive, along links and within `lanes`, and that no ranks can wait for
// room in a circle. InternalError that names the ranks, or those of a circle.
Status prove_routes(const Topology& topology, int lanes, const NextHop& next);

}  // namespace ccom
