// SPDX-License-Identifier: Apache-2.0
#include "bench/cases.h"

#include <algorithm>

namespace ccom::bench {
namespace {

// How many blocks of `count` elements the two buffers hold.
struct Blocks {
  size_t send;
  size_t recv;
};

Blocks blocks_of(Collective collective, int ranks) {
  const auto n = static_cast<size_t>(ranks);
  switch (plain_of(collective)) {
    case Collective::AllGather:
    case Collective::Gather: return {1, n};
    case Collective::ReduceScatter:
    case Collective::Scatter: return {n, 1};
    case Collective::AllToAll: return {n, n};
    case Collective::Barrier: return {0, 0};
    default: return {1, 1};
  }
}

ccomResult_t send_to_next(const Case& what, int rank, const void* send, void* recv, ccomComm_t comm,
                          ccomStream_t stream) {
  const int next = (rank + 1) % what.ranks;
  const int previous = (rank + what.ranks - 1) % what.ranks;
  ccomResult_t result = ccomGroupStart();
  if (result != ccomSuccess) return result;
  const ccomResult_t sent = ccomSend(send, what.count, what.type, next, comm, stream);
  const ccomResult_t received = ccomRecv(recv, what.count, what.type, previous, comm, stream);
  result = ccomGroupEnd();
  return sent != ccomSuccess ? sent : received != ccomSuccess ? received : result;
}

}  // namespace

size_t count_for(Collective collective, ccomDataType_t type, int ranks, size_t size_bytes) {
  const Blocks blocks = blocks_of(collective, ranks);
  const size_t unit = size_of(type) * std::max(blocks.send, blocks.recv);
  if (unit == 0 || size_bytes == 0) return 0;
  return std::max<size_t>(1, size_bytes / unit);
}

size_t size_bytes_of(const Case& what) {
  const Blocks blocks = blocks_of(what.collective, what.ranks);
  return what.count * size_of(what.type) * std::max(blocks.send, blocks.recv);
}

Layout layout_of(const Case& what, int rank) {
  const bool is_root = rank == what.root;
  const Blocks blocks = blocks_of(what.collective, what.ranks);
  const Parts parts = what.parts();
  const auto elements = [&](size_t held) { return held == 1 ? parts.length(rank) : held * what.count; };
  Layout layout{.send_count = elements(blocks.send), .recv_count = elements(blocks.recv)};
  switch (plain_of(what.collective)) {
    case Collective::Broadcast:
    case Collective::Scatter: layout.has_send = is_root; break;
    case Collective::Reduce:
    case Collective::Gather: layout.has_recv = is_root; break;
    case Collective::Barrier: layout.has_send = layout.has_recv = false; break;
    default: break;
  }
  const size_t own_block = parts.begin(rank);
  if (what.in_place && layout.has_send && layout.has_recv) {
    if (blocks.send < blocks.recv) layout.send_offset = own_block;
    if (blocks.recv < blocks.send) layout.recv_offset = own_block;
  }
  return layout;
}

Extent extent_of(const Case& what) {
  Extent most;
  for (int rank = 0; rank < what.ranks; ++rank) {
    const Layout layout = layout_of(what, rank);
    most.send_count = std::max(most.send_count, layout.send_count);
    most.recv_count = std::max(most.recv_count, layout.recv_count);
  }
  return most;
}

std::vector<Arrival> arrivals(const Case& what, int rank, uint64_t iteration) {
  const Parts parts = what.parts();
  const auto one = [&](int source, size_t first, size_t count) {
    return Arrival{.offset = 0, .stretch = {.iteration = iteration, .source = source, .first = first, .count = count}};
  };
  std::vector<Arrival> all;
  if (!layout_of(what, rank).has_recv) return {};
  switch (plain_of(what.collective)) {
    case Collective::AllReduce:
    case Collective::Reduce: return {one(kEveryRank, 0, what.count)};
    case Collective::ReduceScatter: return {one(kEveryRank, parts.begin(rank), parts.length(rank))};
    case Collective::Broadcast: return {one(what.root, 0, what.count)};
    case Collective::Scatter: return {one(what.root, parts.begin(rank), parts.length(rank))};
    case Collective::AllGather:
    case Collective::Gather:
      for (int source = 0; source < what.ranks; ++source) {
        all.push_back(one(source, 0, parts.length(source)));
        all.back().offset = parts.begin(source);
      }
      return all;
    case Collective::AllToAll:
      for (int source = 0; source < what.ranks; ++source) {
        all.push_back(one(source, parts.sent_begin(source, rank), parts.pair_length(source, rank)));
        all.back().offset = parts.received_begin(source, rank);
      }
      return all;
    case Collective::SendRecv: return {one((rank + what.ranks - 1) % what.ranks, 0, what.count)};
    default: return {};
  }
}

Counts counts_of(const Case& what, int rank) {
  Counts counts;
  if (!is_v(what.collective)) return counts;
  const Parts parts = what.parts();
  const bool exchanges = what.collective == Collective::AllToAllV;
  const bool sends = what.collective == Collective::ReduceScatterV || what.collective == Collective::ScatterV;
  for (int other = 0; other < what.ranks; ++other) {
    if (exchanges || sends) counts.sent.push_back(exchanges ? parts.pair_length(rank, other) : parts.length(other));
    if (exchanges || !sends)
      counts.received.push_back(exchanges ? parts.pair_length(other, rank) : parts.length(other));
  }
  return counts;
}

std::vector<Case> cases_of(Collective collective, int ranks, const Range& range) {
  if (collective == Collective::Barrier) return {{.collective = collective, .type = ccomUint8, .ranks = ranks}};
  std::vector<Case> cases;
  const std::vector<Reduction> reductions = reduces(collective) ? range.reductions : std::vector{Reduction::Move};
  const std::vector<int> roots = has_root(collective) ? range.roots : std::vector{0};
  const auto add_sizes = [&](Case what) {
    size_t previous = ~size_t{0};
    for (size_t size : range.sizes) {
      what.count = count_for(collective, what.type, ranks, size);
      what.skew = is_v(collective) ? range.skew : Skew::None;
      if (what.count == previous) continue;
      previous = what.count;
      for (bool in_place : range.in_place) {
        what.in_place = in_place;
        if (!in_place || has_in_place(collective)) cases.push_back(what);
      }
    }
  };
  for (ccomDataType_t type : range.types) {
    for (Reduction reduction : reductions) {
      if (!is_legal(type, reduction)) continue;
      for (int root : roots) {
        add_sizes({.collective = collective, .type = type, .reduction = reduction, .root = root, .ranks = ranks});
      }
    }
  }
  return cases;
}

std::string text_of(const Case& what) {
  std::string text(name_of(what.collective));
  if (what.collective == Collective::Barrier) return text;
  text.append(" ").append(name_of(what.type));
  if (what.reduction != Reduction::Move) text.append(" ").append(name_of(what.reduction));
  if (has_root(what.collective)) text.append(", root ").append(std::to_string(what.root));
  text.append(", ").append(std::to_string(size_bytes_of(what))).append(" bytes");
  if (is_v(what.collective)) text.append(", skew ").append(name_of(what.skew));
  return text.append(what.in_place ? ", in place" : ", out of place");
}

ccomResult_t call(const Case& what, const Counts& counts, int rank, const void* send, void* recv, ccomRedOp_t op,
                  ccomComm_t comm, ccomStream_t stream) {
  const auto [collective, type, reduction, root, in_place, ranks, count, skew] = what;
  const size_t* const sent = counts.sent.data();
  const size_t* const received = counts.received.data();
  const size_t own = is_v(collective) ? what.parts().length(rank) : 0;
  switch (collective) {
    case Collective::AllReduce: return ccomAllReduce(send, recv, count, type, op, comm, stream);
    case Collective::AllGather: return ccomAllGather(send, recv, count, type, comm, stream);
    case Collective::ReduceScatter: return ccomReduceScatter(send, recv, count, type, op, comm, stream);
    case Collective::Broadcast: return ccomBroadcast(send, recv, count, type, root, comm, stream);
    case Collective::Reduce: return ccomReduce(send, recv, count, type, op, root, comm, stream);
    case Collective::AllToAll: return ccomAlltoAll(send, recv, count, type, comm, stream);
    case Collective::Gather: return ccomGather(send, recv, count, type, root, comm, stream);
    case Collective::Scatter: return ccomScatter(send, recv, count, type, root, comm, stream);
    case Collective::Barrier: return ccomBarrier(comm, stream);
    case Collective::SendRecv: return send_to_next(what, rank, send, recv, comm, stream);
    case Collective::AllGatherV: return ccomAllGatherV(send, own, recv, received, nullptr, type, comm, stream);
    case Collective::ReduceScatterV: return ccomReduceScatterV(send, recv, sent, type, op, comm, stream);
    case Collective::AllToAllV: return ccomAlltoAllV(send, sent, nullptr, recv, received, nullptr, type, comm, stream);
    case Collective::GatherV: return ccomGatherV(send, own, recv, received, nullptr, type, root, comm, stream);
    case Collective::ScatterV: return ccomScatterV(send, sent, nullptr, recv, own, type, root, comm, stream);
  }
  return ccomInvalidUsage;
}

}  // namespace ccom::bench
