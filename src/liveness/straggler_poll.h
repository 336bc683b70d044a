// SPDX-License-Identifier: Apache-2.0
//
// Finds the ranks that are furthest behind, over the control tree, after a rank has timed out.
//
// A rank that times out knows only its own peers, which may be waiting for a third rank. So every host reports how many
// calls its slowest ranks have begun, and each neighbour in the tree receives the minimum over all others whenever it
// changes. Pure; lasts until the end of the communicator, because a timeout is final.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace ccom {

struct StragglerReport {
  uint64_t calls = UINT64_MAX;  // begun by each of `ranks`; no rank is known to have begun fewer
  std::vector<Rank> ranks;      // ascending; the first kMost of them
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

  bool is_on() const { return is_on_; }
  // Sets the report of this host. Starts the poll.
  void set_own(StragglerReport own);
  // Sets what neighbour `index` has reported for its side of the tree. Starts the poll.
  void receive(size_t index, StragglerReport report);
  // The report that neighbour `index` has to be sent now, if it has changed.
  std::optional<StragglerReport> update_for(size_t index);
  // Over everything known.
  StragglerReport result() const;

 private:
  StragglerReport without(size_t index) const;

  bool is_on_ = false;
  StragglerReport own_;
  std::vector<StragglerReport> received_;             // from each neighbour
  std::vector<std::optional<StragglerReport>> sent_;  // to each neighbour
};

}  // namespace ccom
