// SPDX-License-Identifier: Apache-2.0
//
// Finds the ranks that are furthest behind, over the control tree, when a rank has waited for long or has timed out.
//
// Such a rank knows only its own peers, which may be waiting for a third rank. So every host reports how many calls its
// slowest ranks have begun, and each neighbour in the tree receives the minimum over all others whenever it changes.
// Pure. Lasts while a rank of any host asks for it: every report says whether one does on the sender's side.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace ccom {

struct StragglerReport {
  static constexpr uint64_t kNoCalls = UINT64_MAX >> 1;
  uint64_t calls = kNoCalls;  // begun by each of `ranks`; no rank is known to have begun fewer
  std::vector<Rank> ranks;    // ascending; the first kMost of them
  bool is_asked_for = false;  // by a rank on the sender's side
  static constexpr size_t kMost = 32;
  friend bool operator==(const StragglerReport&, const StragglerReport&) = default;
};

// The report with fewer calls; both ranks' lists merged if equal.
StragglerReport least_of(const StragglerReport& a, const StragglerReport& b);

std::vector<std::byte> encode_report(const StragglerReport& report);
// Empty unless the bytes are exactly one well-formed report.
std::optional<StragglerReport> decode_report(ConstBytes bytes);

class StragglerPoll {
 public:
  explicit StragglerPoll(size_t neighbours) : received_(neighbours), sent_(neighbours) {}

  // Whether any rank asks for it, on this host or another.
  bool is_on() const;
  // Sets the report of this host.
  void set_own(StragglerReport own) { own_ = std::move(own); }
  // Sets what neighbour `index` has reported for its side of the tree; nothing if it is gone.
  void receive(size_t index, StragglerReport report) { received_[index] = std::move(report); }
  // The report that neighbour `index` has to be sent now, if it has changed.
  std::optional<StragglerReport> update_for(size_t index);
  // Over everything known.
  StragglerReport result() const;

 private:
  StragglerReport without(size_t index) const;

  StragglerReport own_;
  std::vector<StragglerReport> received_;  // from each neighbour
  std::vector<StragglerReport> sent_;      // to each neighbour
};

}  // namespace ccom
