// SPDX-License-Identifier: Apache-2.0
//
// Which steps must wait for which: derived, never written by hand.
//
// Two steps of a rank that touch a common block, at least one of them writing, run in program order. Transfers on one
// channel in one direction are *started* in program order (they may be under way together). Nothing else is ordered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace ccom {

// A value; as large as the plan. `waits_for[s]` counts predecessors of both kinds.
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

// Honours plan.in_place: aliased input and output blocks count as one.
Dependencies derive_dependencies(const Plan& plan);

// Numbers every memory cell that a plan touches, with aliased ones unified: what derivation and verifier mean by "the
// same block".
class Cells {
 public:
  explicit Cells(const Plan& plan);
  uint32_t count() const { return count_; }
  uint32_t of(Buffer buffer, uint32_t index) const;

 private:
  uint32_t input_, output_, count_;
  int64_t shift_;
  bool in_place_;
};

}  // namespace ccom
