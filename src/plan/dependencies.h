// SPDX-License-Identifier: Apache-2.0
//
// Which steps must wait for which: derived, never written by hand.
//
// Two steps of a rank that touch a common block, at least one of them writing, run in program order. Transfers on one
// channel in one direction, and sends of one egress, are *started* in program order (they may be under way together).
// Nothing else is ordered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace ccom {

// A value: 12 bytes per step and 4 per pair of steps that must wait for one another. `waits_for[s]` counts predecessors
// of both kinds.
struct Dependencies {
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> waits_for;
  std::vector<uint32_t> first_successor;  // into successors; one longer than steps
  std::vector<uint32_t> successors;       // steps that may not start before this one is done
  std::vector<uint32_t> next_on_channel;  // the step that may not start before this one has started

  std::span<const uint32_t> successors_of(uint32_t step) const {
    return std::span(successors).subspan(first_successor[step], first_successor[step + 1] - first_successor[step]);
  }
};

// Honours plan.in_place: aliased input and output blocks count as one. Works on runs of blocks: the time follows the
// number of steps and of dependencies, not that of blocks.
Dependencies derive_dependencies(const Plan& plan);

// Numbers every memory cell that a plan touches, with aliased ones unified: what derivation and verifier mean by "the
// same block".
class Cells {
 public:
  explicit Cells(const Plan& plan);
  uint32_t count() const { return count_; }
  uint32_t of(Buffer buffer, uint32_t index) const;
  // Calls fn(first cell, count) for the runs of cells, at most three, that the blocks [first, first + count) are.
  template <typename Fn>
  void for_each_run(Buffer buffer, uint32_t first, uint32_t count, Fn fn) const {
    if (buffer != Buffer::Output || !in_place_) {
      fn(of(buffer, first), count);
      return;
    }
    const uint32_t end = first + count;
    const uint32_t twins = std::clamp(clamped(shift_), first, end);  // output blocks [twins, after) alias the input
    const uint32_t after = std::clamp(clamped(shift_ + input_), first, end);
    if (first < twins) fn(of(buffer, first), twins - first);
    if (twins < after) fn(of(buffer, twins), after - twins);
    if (after < end) fn(of(buffer, after), end - after);
  }

 private:
  static uint32_t clamped(int64_t index) { return static_cast<uint32_t>(std::clamp<int64_t>(index, 0, UINT32_MAX)); }

  uint32_t input_, output_, count_;
  int64_t shift_;
  bool in_place_;
};

}  // namespace ccom
