// SPDX-License-Identifier: Apache-2.0
#include "comm/hierarchy.h"

#include <algorithm>
#include <cstring>

namespace ccom {
namespace {

// One rank can keep this much network busy. On slower ones several flows only get in each other's way: a tile is done
// when its slowest flow is, and flows that share a wire take turns in tens of milliseconds (2 x 4 ranks at 1 Gbit/s:
// the wire was idle for a fifth of the time).
constexpr double kOneRankBytesPerSecond = 2e9;
// Of a rank's share of a tile: long enough to hide meets and system calls, short enough to stay in its cache.
constexpr size_t kMostShareBytes = size_t{512} << 10;
constexpr size_t kLeastShareBytes = size_t{64} << 10;
// Fewer tiles leave the wire idle at the call's ends.
constexpr size_t kGoodTiles = 4;
// Between two hosts every collective is one message each way, and tiles may follow each other on one channel: nothing
// is sent in answer to anything. Blocks of hosts lie apart in an allgather's output, so only these algorithms' messages
// can carry them; a ring where everybody at once would be too many.
constexpr int kMostDirect = 16;

const char* algorithms_across(int hosts) {
  if (hosts == 2) return "allreduce:one_shot,reduce_scatter:direct,allgather:direct,broadcast:star,reduce:star";
  return hosts <= kMostDirect ? "allgather:direct" : "allgather:ring";
}

}  // namespace

int Hierarchy::channels(const HostLevel& level) { return level.hosts == 2 ? 1 : kTiles; }

Hierarchy::Hierarchy(Parts parts, const HostLevel& level, const Topology& topology, InterHostMode crossing)
    : parts_(parts),
      level_(level),
      places_(topology.ranks),
      across_topology_(ccom::across(topology, level)),
      across_{Across(parts.channels, level_.mates, 0), Across(parts.channels, level_.mates, 1 % channels(level)),
              Across(parts.channels, level_.mates, 2 % channels(level)),
              Across(parts.channels, level_.mates, 3 % channels(level))} {
  const bool one_fills_it = topology.network.bytes_per_second <= kOneRankBytesPerSecond;
  if (crossing == InterHostMode::One || (crossing == InterHostMode::Auto && one_fills_it)) speakers_up_to_bytes_ = SIZE_MAX;
  if (crossing == InterHostMode::All) speakers_up_to_bytes_ = 0;
  static_assert(kTiles == 4 && kTiles == Engine::kMostStarted);
  for (size_t i = 0; i < plans_.size(); ++i) {
    plans_[i].emplace(level_.host, across_topology_, Settings{.forced = algorithms_across(level_.hosts)}, across_[i]);
  }
}

Status Hierarchy::run(const Request& request, Envelope envelope, Deadline deadline) {
  type_ = request.type;
  op_ = request.op;
  element_bytes_ = size_of(request.type);
  envelope_ = envelope;
  deadline_ = deadline;
  switch (request.collective) {
    case Collective::AllReduce:
    case Collective::Reduce:
    case Collective::Broadcast:
      return request.count * element_bytes_ <= speakers_up_to_bytes_ ? run_by_speakers(request)
                                                                     : run_by_shares(request);
    case Collective::ReduceScatter: return run_reduce_scatter(request);
    case Collective::AllGather: return run_allgather(request);
    case Collective::AllToAll: return run_alltoall(request);
    default: return run_barrier();
  }
}

// ---- Pieces ---------------------------------------------------------------------------------------------------------

std::byte* Hierarchy::scratch(size_t tile, size_t bytes) {
  std::vector<std::byte>& memory = scratch_[tile % kTiles];
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

TunedCall Hierarchy::node_call(Collective collective, const std::byte* input, std::byte* output, size_t count) const {
  TunedCall call;
  call.collective = collective;
  call.input = input;
  call.output = output;
  call.count = count;
  call.type = type_;
  call.op = op_ == ReduceOp::Avg ? ReduceOp::Sum : op_;  // divided once, when all hosts are in
  return call;
}

// Every call of a host's ranks has words of its own.
Status Hierarchy::inside(const TunedCall& call) {
  ++envelope_.words[4];
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_.left());
  return parts_.node.run(call, envelope_.words, std::max(left, std::chrono::milliseconds(1)));
}

Status Hierarchy::start(size_t tile, const Part& part) {
  const size_t slot = tile % kTiles;
  const PlanKey key{part.collective,
                    type_,
                    op_,
                    part.in_place,
                    false,
                    part.root,
                    -1,
                    part.count,
                    part.stride == 0 ? part.count : part.stride};
  CCOM_TRY_ASSIGN(running_[slot], plans_[slot]->get(key));
  Envelope envelope = envelope_;
  envelope.words[4] = tile;
  const auto contributions = static_cast<uint32_t>(level_.hosts * level_.ranks_per_host);
  return parts_.engine.start(slot, {running_[slot].get(), part.input, part.output, nullptr, envelope, contributions});
}

Status Hierarchy::finish(size_t tile) { return parts_.engine.finish(tile % kTiles, deadline_); }

Status Hierarchy::cross(const Part& part) {
  CCOM_TRY(start(0, part));
  return finish(0);
}

// `parts` tiles' worth of elements are in memory at a time. A multiple of `granule`.
size_t Hierarchy::tile_elements(size_t elements, size_t granule, size_t parts) const {
  const size_t most = kMostShareBytes * static_cast<size_t>(level_.ranks_per_host) / parts;
  const size_t least = kLeastShareBytes * static_cast<size_t>(level_.ranks_per_host) / parts;
  const size_t bytes = std::clamp(elements * element_bytes_ / kGoodTiles, least, most);
  return std::max(bytes / element_bytes_ / granule, size_t{1}) * granule;
}

// ---- Vectors: allreduce, reduce, broadcast --------------------------------------------------------------------------

// One rank of each host sends and receives: of the root's place; without a root, the first.
Status Hierarchy::run_by_speakers(const Request& request) {
  const bool rooted = request.root >= 0;
  const Root root = rooted ? root_of(request.root) : Root{};
  const bool speaks = level_.place == root.place;
  const bool is_root_host = rooted && level_.host == root.host;
  const size_t most = tile_elements(request.count, 64, static_cast<size_t>(level_.ranks_per_host));
  const size_t tiles = std::max((request.count + most - 1) / most, size_t{1});
  const auto length = [&](size_t tile) { return std::min(most, request.count - tile * most); };
  const auto spread = [&](size_t tile) {
    std::byte* const piece = request.output + tile * most * element_bytes_;
    const bool gives = is_root_host && request.collective == Collective::Broadcast;
    TunedCall call = node_call(Collective::Broadcast, gives ? request.input + tile * most * element_bytes_ : piece,
                              piece, length(tile));
    call.root = root.place;
    call.in_place = !gives || request.input == request.output;
    return inside(call);
  };
  if (request.collective == Collective::Broadcast) {
    return in_tiles(
        tiles,
        [&](size_t tile) -> Status {
          std::byte* const piece = request.output + tile * most * element_bytes_;
          const std::byte* const given = is_root_host ? request.input + tile * most * element_bytes_ : piece;
          if (speaks)
            CCOM_TRY(start(
                tile, {Collective::Broadcast, given, piece, length(tile), request.count, root.host, given == piece}));
          return is_root_host ? spread(tile) : Status();
        },
        [&](size_t tile) -> Status {
          if (speaks) CCOM_TRY(finish(tile));
          return is_root_host ? Status() : spread(tile);
        });
  }
  return in_tiles(
      tiles,
      [&](size_t tile) -> Status {
        const size_t offset = tile * most * element_bytes_;
        std::byte* const sum = speaks ? scratch(tile, length(tile) * element_bytes_) : nullptr;
        TunedCall collect = node_call(Collective::Reduce, request.input + offset, sum, length(tile));
        collect.root = root.place;
        CCOM_TRY(inside(collect));
        if (!speaks) return {};
        return start(tile, {request.collective, sum, request.output + offset, length(tile), request.count,
                            rooted ? root.host : -1});
      },
      [&](size_t tile) -> Status {
        if (speaks) CCOM_TRY(finish(tile));
        return rooted ? Status() : spread(tile);
      });
}

Hierarchy::Root Hierarchy::root_of(Rank rank) const {
  const Place& place = places_[static_cast<size_t>(rank)];
  return {place.host, place.local};
}

// Every rank sends and receives its share. What does not divide among the ranks of a host comes last, as a call of its
// own.
Status Hierarchy::run_by_shares(const Request& request) {
  const auto ranks = static_cast<size_t>(level_.ranks_per_host);
  const size_t even = request.count / ranks * ranks;
  const size_t most = tile_elements(even, ranks * 64, 1);
  const auto begin = [&](size_t tile) { return tile * most; };
  const auto share = [&](size_t tile) { return std::min(most, even - begin(tile)) / ranks; };
  const auto own = [&](size_t tile) { return begin(tile) + share(tile) * static_cast<size_t>(level_.place); };
  const auto gathered = [&](size_t tile) -> Status {
    CCOM_TRY(finish(tile));
    TunedCall gather = node_call(Collective::AllGather, request.output + own(tile) * element_bytes_,
                                request.output + begin(tile) * element_bytes_, share(tile));
    gather.in_place = true;
    return inside(gather);
  };
  const auto summed = [&](size_t tile, std::byte* sum) {
    return inside(node_call(Collective::ReduceScatter, request.input + begin(tile) * element_bytes_, sum, share(tile)));
  };
  const size_t tiles = (even + most - 1) / most;
  const Root root = request.root >= 0 ? root_of(request.root) : Root{};
  const bool is_root_host = request.root >= 0 && level_.host == root.host;
  Status status;
  if (request.collective == Collective::AllReduce) {
    status = in_tiles(
        tiles,
        [&](size_t tile) -> Status {
          std::byte* const sum = scratch(tile, share(tile) * element_bytes_);
          CCOM_TRY(summed(tile, sum));
          return start(tile, {Collective::AllReduce, sum, request.output + own(tile) * element_bytes_, share(tile),
                              even / ranks});
        },
        gathered);
  } else if (request.collective == Collective::Reduce) {
    status = in_tiles(
        tiles,
        [&](size_t tile) -> Status {
          const size_t bytes = share(tile) * element_bytes_;
          std::byte* const sum = scratch(tile, 2 * bytes);
          CCOM_TRY(summed(tile, sum));
          return start(tile, {Collective::Reduce, sum, sum + bytes, share(tile), even / ranks, root.host});
        },
        [&](size_t tile) -> Status {
          CCOM_TRY(finish(tile));
          if (!is_root_host) return {};
          const size_t bytes = share(tile) * element_bytes_;
          std::byte* const whole = level_.place == root.place ? request.output + begin(tile) * element_bytes_ : nullptr;
          TunedCall gather = node_call(Collective::Gather, scratch(tile, 2 * bytes) + bytes, whole, share(tile));
          gather.root = root.place;
          return inside(gather);
        });
  } else {
    status = in_tiles(
        tiles,
        [&](size_t tile) -> Status {
          if (is_root_host) {
            const size_t offset = begin(tile) * element_bytes_;
            const std::byte* const input = level_.place == root.place ? request.input + offset : nullptr;
            TunedCall spread = node_call(Collective::Broadcast, input, request.output + offset, share(tile) * ranks);
            spread.root = root.place;
            spread.in_place = request.input == request.output;
            CCOM_TRY(inside(spread));
          }
          std::byte* const piece = request.output + own(tile) * element_bytes_;
          return start(tile, {Collective::Broadcast, piece, piece, share(tile), even / ranks, root.host, true});
        },
        [&](size_t tile) { return is_root_host ? finish(tile) : gathered(tile); });
  }
  CCOM_TRY(std::move(status));
  if (even == request.count) return {};
  Request rest = request;
  rest.count -= even;
  if (rest.input != nullptr) rest.input += even * element_bytes_;
  if (rest.output != nullptr) rest.output += even * element_bytes_;
  return run_by_speakers(rest);
}

Status Hierarchy::run_barrier() {
  const TunedCall meet = node_call(Collective::Barrier, nullptr, nullptr, 0);
  CCOM_TRY(inside(meet));
  if (level_.place == 0) CCOM_TRY(cross({.collective = Collective::Barrier}));
  return inside(meet);
}

}  // namespace ccom
