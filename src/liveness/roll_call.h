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

struct Behind {
  uint64_t calls = UINT64_MAX;  // begun by each of these ranks; nobody is known to have begun fewer
  std::vector<Rank> ranks;      // ascending, the first kMost of them
  static constexpr size_t kMost = 32;
  friend bool operator==(const Behind&, const Behind&) = default;
};

// Of two groups of ranks, those that are furthest behind.
Behind least_of(const Behind& a, const Behind& b);

std::vector<std::byte> encode_behind(const Behind& behind);
// Nothing unless the bytes are exactly one well-formed Behind.
std::optional<Behind> decode_behind(ConstBytes bytes);

class RollCall {
 public:
  explicit RollCall(size_t neighbours) : heard_(neighbours), said_(neighbours) {}

  bool is_on() const { return is_on_; }
  // The own host's ranks. Starts it.
  void set_own(Behind own);
  // What neighbour `index` says of its side of the tree. Starts it.
  void hear(size_t index, Behind behind);
  // What neighbour `index` is to be told now, if it is news.
  std::optional<Behind> news_for(size_t index);
  // Of all that is known.
  Behind result() const;

 private:
  Behind without(size_t index) const;

  bool is_on_ = false;
  Behind own_;
  std::vector<Behind> heard_;                // by neighbour
  std::vector<std::optional<Behind>> said_;  // to each
};

}  // namespace ccom
