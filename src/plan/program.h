// SPDX-License-Identifier: Apache-2.0
//
// A call of all ranks, from first to last byte, as data: what the planner chooses, the verifier proves, the simulator
// times and the runner executes. Global: every rank's plans are derived from it. A value, equal on all ranks.
//
//   one host         [Host: allreduce]
//   several hosts    [Host: reduce-scatter] [Across: allreduce, one group a slice] [Host: allgather]      "sharded"
//                    [Host: reduce to a leader] [Across: allreduce of leaders] [Host: broadcast]          "leaders"
//                    [Across: reduce-scatter of all ranks] [Across: allgather] [Host: allgather]      "direct"
//   any fabric       [All: messages]
//   narrow between   [Host: reduce-scatter] [Host, alone: encode] [Across: allreduce of scaled blocks]
//   hosts            [Host, alone: decode] [Host: allgather]
//   rounded once     [Host, alone: widen] [Host: reduce-scatter] [Across: allreduce of float32]
//                    [Host, alone: round] [Host: allgather]
//
// Types. The user's buffers hold elements of the call's type. A slot of scratch may hold a block of data in another
// one (UnitType): a member that is alone in its group and gets another type than it gives converts what it copies.
//
// Blocks. Collectives of one vector (allreduce, broadcast, reduce) cut it into `slices` blocks; in the others a block
// is a unit (of rank u), in alltoall a pair of ranks, source * nranks + target. A stage moves or sums whole blocks;
// what it cuts them into is its own affair. ProgramGeometry says which bytes a block is.
//
// Tiles. A long call runs in tiles: an element range of every unit after another, each through all stages, several
// under way at a time. order_of() gives the one order in which every rank runs the parts of all tiles; no two ranks
// ever wait for each other in a circle because of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/node_plan.h"
#include "plan/shape.h"

namespace ccom {

// A block and where a rank has it: the slice or unit of the user's buffer, or a slot of scratch. In alltoall's buffers
// index is the other rank. A slot holds a block of a tile.
struct BlockAt {
  uint32_t block = 0;
  Buffer buffer = Buffer::Input;
  uint32_t index = 0;
  friend bool operator==(const BlockAt&, const BlockAt&) = default;
};

// One rank in a stage. Lists are indices into Program::lists: many ranks share one.
struct StageMember {
  Rank rank = 0;
  uint32_t gives = 0, gets = 0;
  friend bool operator==(const StageMember&, const StageMember&) = default;
};

struct Stage {
  enum class Where : uint8_t {
    Host,    // the ranks of one host, through shared memory: each group is all ranks of a host, ascending, or one rank
    Across,  // some ranks, mostly of different hosts, by messages; a rank is in at most one group
    All,     // all ranks, by messages, straight from the user's input to the output; the only stage of its program
  };
  Where where = Where::All;
  Collective collective = Collective::AllReduce;  // what a group does
  int root = -1;           // Across: index into each group; All: a rank. Host: whoever gives or gets alone
  bool sums = false;       // what a member gets of a block is the sum of all who give it
  bool completes = false;  // every contribution is in afterwards: an average divides here, by nranks
  // Ranks that are in no group take no part. A group of one copies. None for All.
  std::vector<std::vector<StageMember>> groups{};
  NodeChoice node{};            // Host. Of a group of each size the same
  MessageAlgorithm messages{};  // Across, All: members are the algorithm's ranks, in list order
  // What its blocks consist of. They differ only where all groups have one member, which converts.
  UnitType gives_type = UnitType::Call, gets_type = UnitType::Call;
  friend bool operator==(const Stage&, const Stage&) = default;
};

struct Program {
  std::string algorithm;  // "node", "hierarchical_sharded", "ring"
  Collective collective = Collective::AllReduce;
  int nranks = 1;
  Rank root = -1;
  uint32_t slices = 1;         // of a vector
  size_t tile_bytes = 0;       // of every unit in a tile; 0: the whole unit
  int lanes = 1;               // sets of channels that tiles under way use in turn (Across)
  bool is_v = false;           // units differ in length: no step of a message spans several
  uint32_t scratch_slots = 0;  // of a tile, on every rank
  std::vector<std::vector<BlockAt>> lists{};
  std::vector<Stage> stages{};
  friend bool operator==(const Program&, const Program&) = default;

  const std::vector<BlockAt>& gives(const StageMember& member) const { return lists[member.gives]; }
  const std::vector<BlockAt>& gets(const StageMember& member) const { return lists[member.gets]; }
  bool is_node() const { return stages.size() == 1 && stages[0].where == Stage::Where::Host; }
  bool is_messages() const { return stages.size() == 1 && stages[0].where == Stage::Where::All; }
  // As what it sends sums between hosts: blocks or Float32; Call: as they are.
  UnitType wire() const;
  // The list's index; one that is there already is shared.
  uint32_t add_list(std::vector<BlockAt> list);
};

// Tiles that may be under way at a time: each has a bank of scratch (tile % kTilesUnderWay).
inline constexpr size_t kTilesUnderWay = 4;

// What a rank does next. A stage of messages is started, and finished later; others run in one part.
struct Part {
  enum class Kind : uint8_t { Run, Start, Finish };
  Kind kind = Kind::Run;
  uint32_t tile = 0;
  uint32_t stage = 0;
  friend bool operator==(const Part&, const Part&) = default;
};
// The one order of a call's parts, the same on every rank; a rank leaves out the stages that it has no part in. While
// messages of some tiles are under way, others are worked on inside hosts: a tile's messages are finished
// kTilesUnderWay - 1 tiles after they were started.
std::vector<Part> order_of(const Program& program, size_t tiles);

// Where a block lies on a rank whose call is `in_place`, by the rules of the C API: what is both input and output
// counts as output.
BlockAt resolve(const Program& program, Rank rank, const BlockAt& at, bool in_place);
// Whether what a member both gives and gets lies at one address: all such blocks do, or none (verify_program checks
// it).
bool is_in_place(const Program& program, const StageMember& member, bool in_place);

// The node task of a group of a Host stage, and the blocks of a group of an Across stage in the same form.
NodeTask node_task(const Program& program, const Stage& stage, size_t group);
// Index of the group that `rank` is in, and of the rank in it; {-1, -1}: none.
struct StagePlace {
  int group = -1, member = -1;
};
StagePlace find_member(const Stage& stage, Rank rank);

// Of the units of a v-form: how long each is, and where it begins in the larger buffer, in elements. All ranks have the
// same lengths; they may have other begins where no stage shows others what lies there.
struct UnitLayout {
  std::vector<size_t> lengths, begins;
  size_t longest() const;
  friend bool operator==(const UnitLayout&, const UnitLayout&) = default;
};

// From blocks to elements, for a call of `count` elements per unit (as in the C API).
class ProgramGeometry {
 public:
  ProgramGeometry(const Program& program, size_t count, size_t element_bytes);
  // Of a v-form of allgather or reduce-scatter. The layout outlives the geometry.
  ProgramGeometry(const Program& program, const UnitLayout& layout, size_t element_bytes);

  size_t tiles() const { return tiles_; }
  // Of every unit in a tile; of the longest.
  size_t tile_elements(size_t tile) const;
  // Whether a unit has as many elements in one tile as in the other, for all units.
  bool are_alike(size_t tile, size_t other) const;
  // Of a block in a tile, 0 for the last slices of a short vector.
  size_t block_elements(size_t tile, uint32_t block) const;
  // First element of what lies at `at` in the user's input or output.
  size_t offset(size_t tile, const BlockAt& at) const;
  // Of a slot of scratch: a multiple of the size of every type that a stage has.
  size_t slot_bytes() const { return slot_bytes_; }
  // Of one bank of scratch.
  size_t scratch_bytes() const { return slots_ * slot_bytes_; }

 private:
  size_t slice_elements(size_t tile) const;

  const UnitLayout* layout_ = nullptr;  // null: all units have count_ elements
  size_t count_, most_ = 0, tiles_ = 1, slices_, slots_, slot_bytes_ = 0, line_;
  bool is_vector_;
  Buffer larger_ = Buffer::Output;  // of a v-form
};

}  // namespace ccom
