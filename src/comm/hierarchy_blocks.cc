// SPDX-License-Identifier: Apache-2.0
//
// Collectives whose blocks belong to ranks: reduce-scatter, allgather, alltoall.
#include <algorithm>

#include "comm/hierarchy.h"

namespace ccom {

// Inside for each host's blocks, then across.
Status Hierarchy::run_reduce_scatter(const Request& request) {
  const auto hosts = static_cast<size_t>(level_.hosts);
  const size_t host_elements = request.count * static_cast<size_t>(level_.ranks_per_host);
  const size_t most = std::min(request.count, tile_elements(host_elements * hosts, 64, hosts));
  const auto length = [&](size_t tile) { return std::min(most, request.count - tile * most); };
  return in_tiles(
      request.count == 0 ? 0 : (request.count + most - 1) / most,
      [&](size_t tile) -> Status {
        const size_t part_bytes = length(tile) * element_bytes_;
        std::byte* const sums = scratch(tile, hosts * part_bytes);
        for (size_t host = 0; host < hosts; ++host) {
          const size_t first = host * host_elements + tile * most;
          TunedCall sum = node_call(Collective::ReduceScatter, request.input + first * element_bytes_,
                                   sums + host * part_bytes, length(tile));
          sum.unit_stride = request.count;
          CCOM_TRY(inside(sum));
        }
        std::byte* const output = request.output + tile * most * element_bytes_;
        return start(tile, {Collective::ReduceScatter, sums, output, length(tile)});
      },
      [&](size_t tile) { return finish(tile); });
}

// Across, then inside for each host's blocks.
Status Hierarchy::run_allgather(const Request& request) {
  const auto hosts = static_cast<size_t>(level_.hosts);
  const auto place = static_cast<size_t>(level_.place);
  const size_t host_elements = request.count * static_cast<size_t>(level_.ranks_per_host);
  const size_t most = std::min(request.count, tile_elements(host_elements * hosts, 64, hosts));
  const auto length = [&](size_t tile) { return std::min(most, request.count - tile * most); };
  const auto block = [&](size_t host, size_t at, size_t tile) {
    return request.output + (host * host_elements + at * request.count + tile * most) * element_bytes_;
  };
  const bool in_place = request.input == block(static_cast<size_t>(level_.host), place, 0);
  return in_tiles(
      request.count == 0 ? 0 : (request.count + most - 1) / most,
      [&](size_t tile) {
        const std::byte* const input = request.input + tile * most * element_bytes_;
        return start(tile,
                     {Collective::AllGather, input, block(0, place, tile), length(tile), host_elements, -1, in_place});
      },
      [&](size_t tile) -> Status {
        CCOM_TRY(finish(tile));
        for (size_t host = 0; host < hosts; ++host) {
          TunedCall gather =
              node_call(Collective::AllGather, block(host, place, tile), block(host, 0, tile), length(tile));
          gather.unit_stride = request.count;
          gather.in_place = true;
          CCOM_TRY(inside(gather));
        }
        return {};
      });
}

// Inside, everybody collects what its host has for the ranks of its place; across, a host's worth in one message.
Status Hierarchy::run_alltoall(const Request& request) {
  const size_t host_elements = request.count * static_cast<size_t>(level_.ranks_per_host);
  std::byte* const collected = scratch(0, host_elements * static_cast<size_t>(level_.hosts) * element_bytes_);
  for (size_t host = 0; host < static_cast<size_t>(level_.hosts); ++host) {
    const size_t offset = host * host_elements * element_bytes_;
    CCOM_TRY(inside(node_call(Collective::AllToAll, request.input + offset, collected + offset, request.count)));
  }
  return cross({Collective::AllToAll, collected, request.output, host_elements});
}

}  // namespace ccom
