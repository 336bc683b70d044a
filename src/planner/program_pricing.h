// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the time of programs that use memory inside hosts, from the prices of their stages.
//
// A tile's time is the sum of its stages'. Of several tiles the ranks work on one while another's messages are under
// way: each further tile takes as long as its longer half, memory or messages. Where racks are far apart, messages of
// kTilesUnderWay tiles are on their way there.
#pragma once

#include <vector>

#include "planner/message_pricer.h"
#include "planner/planner.h"

namespace ccom {

struct StagePrice {
  double time_ns = 0;       // of one tile
  double far_ns = 0;        // of it, on the way between racks
  double memory_bytes = 0;  // loaded and stored by the rank that does most; of the whole call
  double wire_bytes = 0;    // sent by a rank; of the whole call
  double steps = 0;         // barriers, or serial messages, of one tile
};

struct ProgramPrice {
  Price whole;
  std::vector<StagePrice> stages;
  size_t tiles = 1;
};

// What so many bytes of the call are in a stage's type. Blocks with a scale stand for float32 or bfloat16, Float32 for
// narrow floats.
size_t bytes_as(UnitType type, const Question& question, size_t call_bytes);

// Of programs with stages inside hosts.
ProgramPrice price_program(const Topology& topology, const Question& question, const Program& program);

}  // namespace ccom
