// SPDX-License-Identifier: Apache-2.0
//
// What one rank does in a collective through memory that all ranks of a node share, as data.
//
// A plan is a row of phases. Between two phases the rank meets others: it says that it has arrived and waits until they
// have. Inside a phase it combines memory: its own and what others show it. Long calls run in tiles, one element range
// of every unit after another, and tiles move through the phases as through a pipeline (tile_slots()). Checked by
// node_verify.h.
//
// Buffers hold units, those that BlockLists lists for the rank. In a tile each unit is cut into `parts` pieces; piece i
// belongs to unit i / parts of its owner's buffer, so one number may mean different blocks in two ranks' buffers. Stage
// holds all pieces of the input, Partial and Result hold one piece each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/collective.h"

namespace ccom {

enum class Area : uint8_t {
  Input,  // a rank's own buffers. Others touch them only where it lets them reach in
  Output,
  Stage,    // shared memory that belongs to a rank: only it writes there, everybody reads; a last reader may spoil it
  Partial,  // the same, for sums of a part of the ranks
  Result,   // the same, for what is complete
};

// Of the user's memory; the others are staging memory.
inline bool is_buffer(Area area) { return area == Area::Input || area == Area::Output; }

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
  // Nobody reads afterwards what it reads of other ranks' staging memory: it may be overwritten there.
  bool is_last_reader = false;
  friend bool operator==(const NodeStep&, const NodeStep&) = default;
};

struct NodePhase {
  std::vector<NodeStep> steps;
  std::vector<Rank> waits_for;  // at the meet that follows; none after the last phase
  bool is_full = false;         // at that meet everybody waits for everybody, and hears what everybody says
  bool is_silent = false;       // nobody waits for this rank at that meet: it does not say that it has arrived
  friend bool operator==(const NodePhase&, const NodePhase&) = default;
};

// Who gives which blocks of data and who gets them, by local rank, in the order in which they lie in that rank's input
// or output. What a rank gets of a block is the sum of all who give it (NodeTask::sums), or what the one who gives it
// has. Blocks of a sum lie in one order in all inputs.
struct BlockLists {
  std::vector<std::vector<uint32_t>> gives, gets;
  friend bool operator==(const BlockLists&, const BlockLists&) = default;
};

// What the ranks of a host are to do together. Ranks are local ranks.
struct NodeTask {
  Collective collective = Collective::AllReduce;
  int nranks = 1;
  Rank root = -1;  // rooted collectives
  bool sums = false;
  bool completes = false;  // every contribution is in afterwards (an average divides here)
  // In place, a block that a rank gives and gets lies at one address; AllToAll: input and output are one buffer.
  BlockLists blocks{};
  friend bool operator==(const NodeTask&, const NodeTask&) = default;
};

// A collective of all ranks, as the C API lays it out: a block is a unit (alltoall: a pair of ranks).
NodeTask node_task(Collective collective, int nranks, Rank root);
// In place, where input unit `unit` of a rank lies among its output's units; -1: not in the output.
int64_t output_unit_of(const NodeTask& task, Rank rank, uint32_t unit);

enum class NodeScheme : uint8_t { OneShot, GatherRelease, TwoShot, Pull, Domains, Direct };
std::string_view name_of(NodeScheme scheme);

// Which of a rank's buffers the others can load from and store to.
struct Reach {
  bool input = false;
  bool output = false;
  friend bool operator==(const Reach&, const Reach&) = default;
};

struct NodeShape {
  NodeScheme scheme = NodeScheme::TwoShot;
  std::vector<std::vector<Rank>> groups{};  // GatherRelease, Domains: a partition of the ranks, ascending; Domains: of
                                            // equal size
  // OneShot, TwoShot: every rank shows all of its input, also what nobody reads, so that a call can decide between the
  // two after the first barrier, when it knows who can be reached.
  bool whole = false;
  friend bool operator==(const NodeShape&, const NodeShape&) = default;
};

// How a call runs through shared memory. Equal on all ranks. The first phase, before anybody knows who can be reached,
// is that of `staged` for a rank that cannot be reached; whatever the first barrier shows, the plan that follows begins
// with the same phase (verify_program() checks it).
struct NodeChoice {
  // Ranks say at the first barrier where their buffers are. Without it nobody is reached, and `staged` runs.
  bool asks = true;
  bool reads = false;           // buffers that only the kernel can read (process_vm_readv) count as reached
  bool streams = false;         // results go past the caches
  bool streams_shared = false;  // and so does what ranks write to staging memory; with claims_lines, all but inputs
  // A last reader stores to every line that it has read, and so has it alone. Where two caches hold a line, the next
  // store to it waits for both: on some processors that costs several times as much as to take it from one.
  bool claims_lines = false;
  bool stages_mapped = false;    // mapped buffers count as ordinary ones: nobody is reached
  NodeShape staged{};            // no output is reached, and not all inputs
  NodeShape readable{};          // all inputs are reached, no output
  NodeShape mapped{};            // some output is reached
  size_t tile_bytes = SIZE_MAX;  // of what a rank stages at a time; staging memory may allow less

  const NodeShape& shape_for(std::span<const Reach> reach) const;
  // Whether any reach takes it.
  bool has_scheme(NodeScheme scheme) const {
    return staged.scheme == scheme || readable.scheme == scheme || mapped.scheme == scheme;
  }
  friend bool operator==(const NodeChoice&, const NodeChoice&) = default;
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
