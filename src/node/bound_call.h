// SPDX-License-Identifier: Apache-2.0
//
// What a call through shared memory needs besides addresses, found out once for all calls of the same lengths: how far
// the buffers of all ranks reach, and node plans with offsets instead of pieces.
//
// Tiles in a row that are alike share their steps: all but the last one, and the last one; where units differ in
// length and the shorter ones end before the last tile, there are more such rows.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "node/peer_buffers.h"

namespace ccom {

// Of each source, between two looks at the communicator's error; at most.
inline constexpr size_t kStrideBytes = size_t{128} << 10;

// In bytes, of tile 0: from the begin of the owner's buffer, or of a bank of its staging memory. Tiles follow one
// another in buffers alone.
struct BoundNodeOperand {
  Operand operand;
  bool is_claimed = false;  // another rank's staging memory, of a way that claims lines
  int64_t offset = 0;
};

// Of some elements.
struct BoundNodeStep {
  std::span<const BoundNodeOperand> sources{}, targets{};  // targets: the streamed ones first
  size_t streamed = 0;                                     // targets that are written past the caches
  size_t elements = 0;
  size_t stride = 0;         // elements between two looks at the communicator's error
  size_t first_element = 0;  // of tile 0, in the Input of the first source's owner, where sums are made
  bool combines = false, completes = false;
  bool claims = false;  // stores to all lines of claimed sources that it has read
};

// Belongs to one thread at a time, as does BoundCall.
class BoundNodePlan {
 public:
  // The call only for its lengths and its way. streams: results go past the caches.
  BoundNodePlan(const NodeCall& call, std::shared_ptr<const MadePlan> made, const NodeLayout& layout, bool streams);

  const MadePlan& made() const { return *made_; }
  bool streams() const { return streams_; }
  size_t tiles() const { return tiles_; }
  size_t tile_bytes() const { return tile_bytes_; }  // of a unit
  size_t tile_elements() const { return tile_elements_; }
  // What a tile does in a phase. Tiles are asked for in the order of time slots, by a call of the same lengths and way.
  std::span<const BoundNodeStep> steps(const NodeCall& call, size_t phase, size_t tile) {
    const size_t number = first_tiles_.size() == 1 ? 0 : row_of(tile);
    Row& row = rows_[number == 0 ? 0 : number % rows_.size()];  // a division takes longer than all else here
    if (row.number != number) [[unlikely]]
      bind(call, number);
    return {row.steps.data() + row.begins[phase], row.begins[phase + 1] - row.begins[phase]};
  }

 private:
  // As many are kept as tiles are under way at a time.
  struct Row {
    size_t number = SIZE_MAX;
    std::vector<uint32_t> begins{};  // of each phase's steps, and the end
    std::vector<BoundNodeStep> steps{};
    std::vector<BoundNodeOperand> operands{};
  };
  size_t row_of(size_t tile) const;
  void find_rows(const NodeCall& call);
  void bind(const NodeCall& call, size_t number);
  void bind_step(const NodeCall& call, const NodeGeometry& geometry, const NodeStep& step, size_t tile, Row& row) const;
  int64_t offset_of(const NodeGeometry& geometry, const Operand& operand, size_t tile, uint32_t piece) const;
  bool is_streamed(const NodeChoice& choice, const Operand& target) const;

  const std::shared_ptr<const MadePlan> made_;
  const NodeLayout layout_;
  const bool streams_;
  size_t tiles_ = 1, tile_bytes_ = 0, tile_elements_ = 0;
  std::vector<size_t> first_tiles_{0};  // of each row
  std::vector<Row> rows_;               // row i is in place i modulo their number
};

// Kept by whoever makes calls of the same task, lengths, type and views again and again.
class BoundCall {
 public:
  // What it keeps is made by the first call.
  PeerBuffers& buffers(const NodeCall& call) {
    if (!buffers_) [[unlikely]]
      buffers_.emplace(call);
    return *buffers_;
  }
  // Who was reached in the last call.
  std::span<const Reach> reach() const { return buffers_->reach(); }
  // PreparedTask::opening() and plan(). is_new: ranks have said something else than in the last call.
  BoundNodePlan& opening(const NodeCall& call, const NodeLayout& layout) {
    if (opening_ == nullptr || !is_of(*opening_, call)) [[unlikely]]
      opening_ = &find_opening(call, layout);
    return *opening_;
  }
  Result<BoundNodePlan*> plan(const NodeCall& call, bool is_new, const PreparedTask::Prove& prove,
                              const NodeLayout& layout) {
    if (is_new || plan_ == nullptr || !is_of(*plan_, call)) [[unlikely]]
      return find_plan(call, prove, layout);
    return plan_;
  }
  // Of the buffers of the last call, what CallChoices heard.
  uint64_t heard = 0;
  // About what calls of so many ranks take that have tried all ways.
  static size_t bytes(int ranks) { return kMostPlans / 4 * static_cast<size_t>(ranks) * 3 * sizeof(BoundNodeStep); }

 private:
  static constexpr size_t kMostPlans = 64;  // more than there are ways: one that is tried again is known

  static bool is_of(const BoundNodePlan& plan, const NodeCall& call) {
    return plan.made().way == call.task->way() && plan.made().in_place == call.in_place;
  }
  BoundNodePlan& find_opening(const NodeCall& call, const NodeLayout& layout);
  Result<BoundNodePlan*> find_plan(const NodeCall& call, const PreparedTask::Prove& prove, const NodeLayout& layout);
  BoundNodePlan* find(const NodeCall& call, std::span<const Reach> reach, bool streams);
  BoundNodePlan& add(const NodeCall& call, std::shared_ptr<const MadePlan> made, const NodeLayout& layout,
                     bool streams);

  std::optional<PeerBuffers> buffers_;
  std::vector<std::unique_ptr<BoundNodePlan>> plans_;   // the latest first
  BoundNodePlan *opening_ = nullptr, *plan_ = nullptr;  // among them, of the last call
};

}  // namespace ccom
