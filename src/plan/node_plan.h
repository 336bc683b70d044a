// SPDX-License-Identifier: Apache-2.0
//
// What one rank does in a collective through memory that all ranks of a node share, as data.
//
// A plan is a row of phases. Between two phases the rank meets others: it says that it has arrived and waits until they
// have. Inside a phase it combines memory: its own and what others show it. Long calls run in tiles, one element range
// of every unit after another, and tiles move through the phases as through a pipeline (tile_slots()). Checked by
// node_verify.h.
//
// Units are as in plan.h: a vector (allreduce) or a part per rank (allgather). In a tile each unit is cut into `parts`
// pieces; piece i belongs to unit i / parts. Stage holds all pieces of the input, Partial and Result hold one piece
// each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"

namespace ccom {

enum class Area : uint8_t {
  Input,  // a rank's own buffers. Others touch them only where it lets them reach in
  Output,
  Stage,    // shared memory that belongs to a rank: only it writes there, everybody reads
  Partial,  // the same, for sums of a part of the ranks
  Result,   // the same, for what is complete
};

struct Operand {
  Area area = Area::Input;
  Rank owner = -1;
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Every target = the sources combined in list order; one source is copied. A block is read before it is written.
struct NodeStep {
  std::vector<Operand> sources;
  std::vector<Operand> targets;
  uint32_t source_piece = 0;
  uint32_t target_piece = 0;
  uint32_t count = 1;      // pieces; more than one only between buffers that hold all pieces
  bool completes = false;  // every contribution is in now (an average divides here)
  friend bool operator==(const NodeStep&, const NodeStep&) = default;
};

struct NodePhase {
  std::vector<NodeStep> steps;
  std::vector<Rank> waits_for;  // at the meet that follows; none after the last phase
  bool is_full = false;         // at that meet everybody waits for everybody, and hears what everybody says
  bool is_silent = false;       // nobody waits for this rank at that meet: it does not say that it has arrived
  friend bool operator==(const NodePhase&, const NodePhase&) = default;
};

// One rank's part. A value.
struct NodePlan {
  Collective collective = Collective::AllReduce;
  std::string algorithm;
  Rank rank = 0;
  int nranks = 1;
  Rank root = -1;
  bool in_place = false;
  uint32_t parts = 1;
  uint32_t input_units = 0, output_units = 0;
  bool staged = false;  // on this rank or another: tiles are as long as staging memory allows
  std::vector<NodePhase> phases;

  friend bool operator==(const NodePlan&, const NodePlan&) = default;
};

// In time slot t a rank runs phase k of tile t - k for every k in ascending order. After every slot but the last it
// meets those that any of these phases waits for.
inline size_t tile_slots(const NodePlan& plan, size_t tiles) { return tiles + plan.phases.size() - 1; }

// Staging memory has this many banks, used in turn by the tiles of all calls.
inline constexpr size_t kNodeBanks = 2;

}  // namespace ccom
