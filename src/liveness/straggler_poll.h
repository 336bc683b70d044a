// SPDX-License-Identifier: Apache-2.0
//
// Which ranks are furthest behind, found over the control tree once somebody's time is up.
//
// A rank that waits in vain knows only for whom it waits itself, who may be waiting for a third. So every host says how
// many calls its slowest ranks have begun; each neighbour in the tree is told the least of what all others have said,
// whenever that changes. Pure; ends with the communicator, for a timeout is final.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace ccom {

struct StragglerReport {
  uint64_t calls = UINT64_MAX;  // begun by each of these ranks; nobody is known to have begun fewer
  std::vector<Rank> ranks;      // ascending, the first kMost of them
  static constexpr size_t kMost = 32;
  friend bool operator==(const StragglerReport&, const StragglerReport&) = default;
};

// Of two groups of ranks, those that are furthest behind.
StragglerReport least_of(const StragglerReport& a, const StragglerReport& b);

std::vector<std::byte> encode_behind(const StragglerReport& behind);
// Nothing unless the bytes are exactly one well-formed StragglerReport.
std::optional<StragglerReport> decode_behind(ConstBytes bytes);

class StragglerPoll {
 public:
  explicit StragglerPoll(size_t neighbours) : heard_(neighbours), said_(neighbours) {}

  bool is_on() const { return is_on_; }
  // The own host's ranks. Starts it.
  void set_own(StragglerReport own);
  // What neighbour `index` says of its side of the tree. Starts it.
  void hear(size_t index, StragglerReport behind);
  // What neighbour `index` is to be told now, if it is news.
  std::optional<StragglerReport> news_for(size_t index);
  // Of all that is known.
  StragglerReport result() const;

 private:
  StragglerReport without(size_t index) const;

  bool is_on_ = false;
  StragglerReport own_;
  std::vector<StragglerReport> heard_;                // by neighbour
  std::vector<std::optional<StragglerReport>> said_;  // to each
};

}  // namespace ccom
