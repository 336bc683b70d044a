// SPDX-License-Identifier: Apache-2.0
#include "algorithms/forwarding.h"

#include <algorithm>

#include "algorithms/builder.h"

namespace ccom {
namespace {

// This rank's part in a message.
struct PartInMessage {
  Rank from = -1, to = -1;  // -1: it is its first or its last rank
  uint32_t unit = 0;        // of the input or the output; of scratch its first slot
  bool is_direct = false;   // along a link: not in pieces
};

}  // namespace

Plan forwarding_plan(Rank rank, int nranks, std::span<const std::vector<Rank>> ways, uint32_t pieces) {
  Plan plan;
  plan.collective = Collective::SendReceive;
  plan.algorithm = "forwarded";
  plan.rank = rank;
  plan.nranks = nranks;
  plan.blocks_per_unit = pieces;
  std::vector<PartInMessage> parts;
  for (const std::vector<Rank>& way : ways) {
    CCOM_ASSERT(way.size() > 1);
    const auto at = std::ranges::find(way, rank);
    if (at == way.end()) continue;
    PartInMessage part{.is_direct = way.size() == 2};
    if (at != way.begin()) part.from = *(at - 1);
    if (at + 1 != way.end()) part.to = *(at + 1);
    if (part.from < 0) {
      part.unit = plan.input_units++;
    } else if (part.to < 0) {
      part.unit = plan.output_units++;
    } else {
      part.unit = plan.scratch_slots;
      plan.scratch_slots += std::min<uint32_t>(2, pieces);
    }
    parts.push_back(part);
  }
  // All ranks take pieces in the same order, so both ends of a channel do, and the first piece that has not arrived
  // waits for nothing.
  StepWriter writer(std::move(plan));
  for (uint32_t piece = 0; piece < pieces; ++piece) {
    for (const PartInMessage& part : parts) {
      if (part.is_direct) {
        const uint32_t first = part.unit * pieces;
        if (piece == 0 && part.from >= 0) writer.receive_into(part.from, {Buffer::Output, first}, first, pieces);
        if (piece == 0 && part.to >= 0) writer.send_from(part.to, {Buffer::Input, first}, first, pieces);
        continue;
      }
      const uint32_t block = part.unit * pieces + piece;
      const Location kept{Buffer::Scratch, part.unit + piece % 2};
      if (part.from >= 0)
        writer.receive_into(part.from, part.to < 0 ? Location{Buffer::Output, block} : kept,
                            part.to < 0 ? block : piece, 1);
      if (part.to >= 0)
        writer.send_from(part.to, part.from < 0 ? Location{Buffer::Input, block} : kept, part.from < 0 ? block : piece,
                         1);
    }
  }
  return std::move(writer).finish();
}

}  // namespace ccom
