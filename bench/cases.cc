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
  switch (collective) {
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
  Layout layout{.send_count = blocks.send * what.count, .recv_count = blocks.recv * what.count};
  switch (what.collective) {
    case Collective::Broadcast:
    case Collective::Scatter: layout.has_send = is_root; break;
    case Collective::Reduce:
    case Collective::Gather: layout.has_recv = is_root; break;
    case Collective::Barrier: layout.has_send = layout.has_recv = false; break;
    default: break;
  }
  const size_t own_block = what.count * static_cast<size_t>(rank);
  if (what.in_place && layout.has_send && layout.has_recv) {
    if (blocks.send < blocks.recv) layout.send_offset = own_block;
    if (blocks.recv < blocks.send) layout.recv_offset = own_block;
  }
  return layout;
}

std::vector<Arrival> arrivals(const Case& what, int rank, uint64_t iteration) {
  const size_t count = what.count;
  const size_t own_block = count * static_cast<size_t>(rank);
  const auto one = [&](int source, size_t first) {
    return Arrival{.offset = 0, .stretch = {.iteration = iteration, .source = source, .first = first, .count = count}};
  };
  const auto from_each = [&](size_t first) {
    std::vector<Arrival> all;
    for (int source = 0; source < what.ranks; ++source) {
      all.push_back(one(source, first));
      all.back().offset = count * static_cast<size_t>(source);
    }
    return all;
  };
  if (!layout_of(what, rank).has_recv) return {};
  switch (what.collective) {
    case Collective::AllReduce:
    case Collective::Reduce: return {one(kEveryRank, 0)};
    case Collective::ReduceScatter: return {one(kEveryRank, own_block)};
    case Collective::Broadcast: return {one(what.root, 0)};
    case Collective::Scatter: return {one(what.root, own_block)};
    case Collective::AllGather:
    case Collective::Gather: return from_each(0);
    case Collective::AllToAll: return from_each(own_block);
    case Collective::SendRecv: return {one((rank + what.ranks - 1) % what.ranks, 0)};
    case Collective::Barrier: return {};
  }
  return {};
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
  return text.append(what.in_place ? ", in place" : ", out of place");
}

ccomResult_t call(const Case& what, int rank, const void* send, void* recv, ccomRedOp_t op, ccomComm_t comm,
                  ccomStream_t stream) {
  const auto [collective, type, reduction, root, in_place, ranks, count] = what;
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
  }
  return ccomInvalidUsage;
}

}  // namespace ccom::bench
